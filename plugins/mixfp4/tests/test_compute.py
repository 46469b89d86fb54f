"""Products of stored tensors."""

from fractions import Fraction

import attrs
import compressed_tensors.compressors as peer
import pytest
import torch
from compressed_tensors.quantization import preset_name_to_scheme

from separata_mixfp4.compute import e2m2_table, integer_matmul, linear
from separata_mixfp4.errors import BadCodes
from separata_mixfp4.formats import E2M1, E2M2, INT4
from separata_mixfp4.quantizer import fake_quantize, quantize


@pytest.mark.parametrize("form", [E2M1, INT4], ids=["e2m1", "int4"])
def test_both_grids_are_exact_in_e2m2(form):
    assert torch.equal(E2M2.decode(e2m2_table(form)), form.values())


def test_integers_give_the_product_of_dequantised_numbers_to_the_last_bit(tensors):
    one = torch.ones(())
    x, weight = (attrs.evolve(quantize(tensors[name]), global_scale=one) for name in ("mixed", "gaussian"))
    expected = x.dequantize(torch.float64) @ weight.dequantize(torch.float64).T
    assert torch.equal(integer_matmul(x, weight), expected)


def test_integers_give_the_product_of_fractions(tensors):
    x, weight = quantize(tensors["heavy"][:2]), quantize(tensors["flat"][:2])
    found = integer_matmul(x, weight)
    for row in range(2):
        for column in range(2):
            left, right = (
                [
                    Fraction(element) * Fraction(scale)
                    for block, scale in zip(
                        stored.elements(torch.float64)[place].tolist(),
                        attrs.evolve(
                            stored,
                            codes=torch.full_like(stored.codes, 0x22),
                            scales=stored.scales & 0x7F,
                            global_scale=torch.ones(()),
                        )
                        .dequantize(torch.float64)[place, ::16]
                        .tolist(),
                        strict=True,
                    )
                    for element in block
                ]
                for stored, place in ((x, row), (weight, column))
            )
            total = sum(a * b for a, b in zip(left, right, strict=True))
            divisor = Fraction(x.global_scale.item()) * Fraction(weight.global_scale.item())
            assert found[row, column].item() == pytest.approx(float(total / divisor), rel=2**-51)


def test_shapes_that_do_not_fit_are_refused(tensors):
    with pytest.raises(BadCodes):
        integer_matmul(quantize(tensors["flat"]), quantize(tensors["flat"][:, :48]))


def test_a_linear_layer_quantises_its_input(tensors):
    x, weight = tensors["mixed"].view(2, 4, 96), quantize(tensors["gaussian"])
    bias = torch.arange(8.0, dtype=torch.float64)
    expected = fake_quantize(x) @ weight.dequantize(torch.float64).T + bias
    assert torch.allclose(linear(x, weight, bias), expected, rtol=1e-12)
    dense = x @ weight.dequantize(torch.float64).T
    assert torch.allclose(linear(x, weight, method=None), dense, rtol=1e-12)


def test_compressed_tensors_reads_plain_nvfp4_the_same(tensors):
    stored = quantize(tensors["heavy"].float(), method="nvfp4")
    state = {
        "weight_packed": stored.codes,
        "weight_scale": stored.scales.view(torch.float8_e4m3fn),
        "weight_global_scale": stored.global_scale,
    }
    found = peer.NVFP4PackedCompressor.decompress(state, preset_name_to_scheme("NVFP4", ["Linear"]))["weight"]
    # It multiplies in bfloat16: 8 bits, rounded twice.
    assert torch.allclose(found.float(), stored.dequantize(), rtol=2**-7, atol=0)
