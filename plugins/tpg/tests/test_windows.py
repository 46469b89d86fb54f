"""Window sums against loops, and what they must recover."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_tpg import contributions, forward_sums
from separata_tpg.windows import contributions_reference


@settings(max_examples=40, deadline=None)
@given(
    steps=st.integers(1, 40),
    k=st.integers(0, 50),
    discount=st.sampled_from([1.0, 0.9, 0.3, 0.0]),
    seed=st.integers(0, 1000),
)
def test_fast_sums_are_those_of_two_loops(steps: int, k: int, discount: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    outcomes = 100 + torch.randn(2, steps, generator=generator, dtype=torch.float64)
    arms = torch.randint(0, 2, (2, steps), generator=generator)
    chance = torch.tensor(0.3, dtype=torch.float64)
    found = contributions(outcomes, arms, chance, k, discount)
    torch.testing.assert_close(
        found, contributions_reference(outcomes, arms, chance, k, discount), rtol=1e-11, atol=1e-8
    )


def test_a_high_level_costs_no_digits() -> None:
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    raised = forward_sums(values + 1e6, 10)[:-10] - 11e6
    # One unit in the last place of 11e6 is 2e-9; the input has lost 1e-10 a value already.
    assert (raised - forward_sums(values, 10)[:-10]).abs().max() < 2e-8


def test_no_discounted_future_is_no_future() -> None:
    values = torch.arange(6, dtype=torch.float64)
    assert torch.equal(forward_sums(values, 3, 0.0), forward_sums(values, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_whole_future_is_a_reversed_cumulative_sum(dtype: torch.dtype) -> None:
    values = torch.arange(8, dtype=dtype)
    assert np.array_equal(forward_sums(values, 7), np.cumsum(values.numpy()[::-1])[::-1])
