from __future__ import annotations

import pytest
import torch

from separata_eco.rounding import to_bfloat16

DRAWS = 100_000


@pytest.mark.parametrize("value", [1.0 + 2**-9, -3.3, 1e-40, 0.9999, 123456.7])
def test_it_is_unbiased_between_both_neighbours(generator: torch.Generator, value: float) -> None:
    x = torch.full((DRAWS,), value)
    found = to_bfloat16(x, generator).double()
    below, above = found.min(), found.max()
    assert below <= x[0].double() <= above
    assert len(found.unique()) == 2
    share = (x[0].double() - below) / (above - below)
    error = (found.mean() - x[0].double()) / (above - below)
    assert error.abs() < 4 * (share * (1 - share) / DRAWS).sqrt() + 2**-16


def test_numbers_of_the_grid_stay(generator: torch.Generator) -> None:
    x = torch.randn(1000).bfloat16()
    assert torch.equal(to_bfloat16(x.float(), generator), x)


def test_the_largest_numbers_stay_finite(generator: torch.Generator) -> None:
    x = torch.full((100,), torch.finfo(torch.float32).max)
    assert to_bfloat16(x, generator).isfinite().all()
