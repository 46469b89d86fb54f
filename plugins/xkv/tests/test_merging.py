from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from separata_xkv.merging import Merged, slerp


def unit(*shape: int) -> torch.Tensor:
    return normalize(
        torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=-1
    )


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.5, 1.0])
def test_slerp_in_the_plane_divides_the_angle(weight: float) -> None:
    angle = 1.2
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([math.cos(angle), math.sin(angle)])
    expected = torch.tensor([math.cos(weight * angle), math.sin(weight * angle)])
    torch.testing.assert_close(slerp(first, second, weight), expected)


def test_slerp_is_as_far_from_both_and_of_unit_length() -> None:
    first, second = unit(2, 5, 8)
    middle = slerp(first, second)
    torch.testing.assert_close(middle.norm(dim=-1), torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close((middle * first).sum(-1), (middle * second).sum(-1))


def test_slerp_of_equal_and_opposite_vectors_is_finite() -> None:
    vector = unit(4, 8)
    torch.testing.assert_close(slerp(vector, vector), vector)
    assert slerp(vector, -vector).isfinite().all()


def test_layers_with_one_direction_come_back() -> None:
    direction = unit(1, 2, 20, 8).float()
    first, second = 3 * direction, 0.5 * direction
    merged = Merged(first, second, retained=0)
    torch.testing.assert_close(merged.states(0), first)
    torch.testing.assert_close(merged.states(1), second)


def test_retained_tokens_are_the_least_alike_and_exact() -> None:
    direction = unit(1, 2, 20, 8).float()
    first, second = direction.clone(), 2 * direction
    second[:, :, [3, 11]] *= -1
    merged = Merged(first, second, retained=0.1)
    assert sorted(merged.places[0].tolist()) == [3, 11]
    torch.testing.assert_close(merged.states(1), second)


def test_magnitudes_are_each_layers_own() -> None:
    first, second = torch.randn(2, 1, 2, 20, 8, generator=torch.Generator().manual_seed(1))
    merged = Merged(first, second)
    torch.testing.assert_close(merged.states(1).norm(dim=-1), second.norm(dim=-1))
