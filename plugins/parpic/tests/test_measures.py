"""Vertex measures sum to 1 and are what their names say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from separata_parpic import errors, vertex_measure
from separata_parpic.measures import MEASURES
from separata_parpic.operators import random_walk

Layout = Callable[[Tensor], Tensor]


@pytest.mark.parametrize("kind", MEASURES)
def test_a_measure_is_a_probability_whatever_the_layout(kind: str, weights: Tensor, layout: Layout) -> None:
    found = vertex_measure(layout(weights), kind)
    assert found.sum().item() == pytest.approx(1, abs=1e-12)
    assert (found >= 0).all()
    torch.testing.assert_close(found, vertex_measure(weights, kind))


def test_gamma_mixes_the_shares_of_in_and_out_degrees(weights: Tensor) -> None:
    total = weights.sum()
    expected = 0.3 * weights.sum(0) / total + 0.7 * weights.sum(1) / total
    torch.testing.assert_close(vertex_measure(weights, gamma=0.3), expected)


def test_the_harmonic_mean_of_degrees_is_zero_where_one_is(weights: Tensor) -> None:
    out, into = weights.sum(1), weights.sum(0)
    expected = 2 / (1 / out + 1 / into)
    found = vertex_measure(weights, "harmonic")
    assert found[4] == 0
    torch.testing.assert_close(found, expected / expected.sum())


def test_the_walks_law_is_a_row_vector_times_its_power(weights: Tensor) -> None:
    law = torch.full((20,), 1 / 20, dtype=torch.float64) @ torch.linalg.matrix_power(random_walk(weights), 5)
    found = vertex_measure(weights, "walk", steps=5, power=0.5)
    torch.testing.assert_close(found, law.sqrt() / law.sqrt().sum())


@pytest.mark.parametrize(
    "wrong", [{"kind": "pagerank"}, {"gamma": 1.5}, {"gamma": -0.1}, {"kind": "walk", "steps": 0}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], weights: Tensor) -> None:
    with pytest.raises(errors.InvalidSetting):
        vertex_measure(weights, **wrong)  # type: ignore[arg-type]
