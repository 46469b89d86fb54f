"""The stored form."""

import attrs
import pytest
import torch

from separata_mixfp4.errors import BadCodes
from separata_mixfp4.quantizer import quantize
from separata_mixfp4.tensor import UNIFORM_BIT


@pytest.fixture
def stored(tensors):
    return quantize(tensors["mixed"])


def test_a_number_takes_four_and_a_half_bits(stored):
    assert 8 * (stored.nbytes - stored.global_scale.nbytes) == 4.5 * stored.shape.numel()


def test_bit_seven_decides_the_grid(stored):
    uniform = attrs.evolve(stored, scales=stored.scales | UNIFORM_BIT).elements()
    floating = attrs.evolve(stored, scales=stored.scales & 0x7F).elements()
    assert set(uniform.abs().unique().tolist()) <= set(range(8))
    assert set(floating.abs().unique().tolist()) <= {0, 0.5, 1, 1.5, 2, 3, 4, 6}
    both = torch.where(stored.uniform[..., None], uniform, floating)
    assert torch.equal(stored.elements(), both)
    assert stored.uniform.any()
    assert not stored.uniform.all()


@pytest.mark.parametrize("kind", [0, UNIFORM_BIT])
def test_a_zero_scale_decodes_to_zeros_whatever_the_grid(stored, kind):
    dead = attrs.evolve(stored, scales=torch.full_like(stored.scales, kind))
    assert not dead.dequantize().any()


@pytest.mark.parametrize(
    "change",
    [
        {"codes": torch.zeros(8, 48)},
        {"codes": torch.zeros(8, 47, dtype=torch.uint8)},
        {"scales": torch.zeros(8, 5, dtype=torch.uint8)},
        {"shape": (8, 112)},
    ],
    ids=lambda change: str(*change),
)
def test_parts_that_do_not_belong_together_are_refused(stored, change):
    with pytest.raises(BadCodes):
        attrs.evolve(stored, **change)


def test_it_moves_between_devices(stored):
    assert stored.to("meta").codes.device.type == "meta"
