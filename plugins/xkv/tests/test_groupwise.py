from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_xkv.errors import InvalidSetting
from separata_xkv.groupwise import Quantised


@settings(deadline=None)
@given(bits=st.integers(1, 8), group=st.sampled_from([8, 16, 64]), seed=st.integers(0, 1000))
def test_error_is_at_most_half_a_step(bits: int, group: int, seed: int) -> None:
    states = torch.randn(2, 3, 5, 64, generator=torch.Generator().manual_seed(seed))
    grouped = states.unflatten(-1, (-1, group))
    step = (grouped.amax(-1) - grouped.amin(-1)) / (2**bits - 1)
    error = (Quantised(states, bits, group).dequantise() - states).abs().unflatten(-1, (-1, group))
    # Scale and offset are kept in float16: 2^-11 of the largest value, for each of up to 2^bits - 1 steps.
    slack = 2**-10 * grouped.abs().amax(-1)
    assert (error.amax(-1) <= step / 2 + slack).all()


@pytest.mark.parametrize("bits", range(1, 9))
def test_values_on_the_grid_come_back_exactly(bits: int) -> None:
    codes = torch.randint(2**bits, (2, 7, 32), generator=torch.Generator().manual_seed(0)).float()
    codes[..., 0], codes[..., 1] = 0, 2**bits - 1
    codes[..., 16], codes[..., 17] = 0, 2**bits - 1
    states = 0.25 * codes - 3
    assert torch.equal(Quantised(states, bits, 16).dequantise(), states)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
def test_bytes_are_bits_and_two_half_precision_numbers_a_group(bits: int) -> None:
    held = list(Quantised(torch.randn(1, 2, 24, 64), bits, 32).tensors())
    assert sum(tensor.nbytes for tensor in held) == 2 * 24 * 64 * bits // 8 + 2 * 24 * 2 * 2 * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtype_comes_back(dtype: torch.dtype) -> None:
    assert Quantised(torch.randn(1, 8).to(dtype), 4, 8).dequantise().dtype == dtype


def test_a_constant_group_comes_back() -> None:
    assert torch.equal(Quantised(torch.full((1, 8), 1.5), 2, 8).dequantise(), torch.full((1, 8), 1.5))


def test_transposed_states_are_taken_as_they_are_seen() -> None:
    states = torch.randn(1, 16, 8).mT
    assert torch.equal(Quantised(states, 3, 8).planes, Quantised(states.contiguous(), 3, 8).planes)


@pytest.mark.parametrize(("bits", "group"), [(0, 8), (9, 8), (2, 4), (2, 12), (2, 24)])
def test_out_of_range_is_refused(bits: int, group: int) -> None:
    with pytest.raises(InvalidSetting):
        Quantised(torch.randn(1, 32), bits, group)
