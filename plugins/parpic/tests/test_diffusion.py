"""Diffusion: powers without powers, entropy of rows without transposes, and the knee."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from separata_parpic import (
    diffuse,
    diffusion_time,
    entropy_curve,
    errors,
    reversible_operator,
    vertex_measure,
)


@pytest.fixture
def operator(weights: Tensor) -> tuple[Tensor, Tensor]:
    return reversible_operator(weights, vertex_measure(weights))


def test_diffusion_is_a_matrix_power(operator: tuple[Tensor, Tensor]) -> None:
    signals = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = torch.linalg.matrix_power(operator[0], 7) @ signals
    torch.testing.assert_close(diffuse(operator[0], signals, 7), expected, rtol=0.0, atol=1e-12)
    assert torch.equal(diffuse(operator[0], signals, 0), signals)


def test_after_many_steps_all_vertices_have_the_mean_under_the_stationary_law(
    operator: tuple[Tensor, Tensor],
) -> None:
    matrix, stationary = operator
    signals = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(diffuse(matrix, signals, 2000), (stationary @ signals).expand(20, 3))


def test_negative_steps_are_refused(operator: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(errors.InvalidSetting, match="steps is -1"):
        diffuse(operator[0], torch.ones(20, 1, dtype=torch.float64), -1)


def test_from_all_starts_it_is_the_entropy_of_the_rows_of_the_power(operator: tuple[Tensor, Tensor]) -> None:
    matrix, stationary = operator
    curve = entropy_curve(matrix, stationary, torch.arange(20), max_steps=6, tolerance=0.0)
    exact = [
        torch.special.entr(torch.linalg.matrix_power(matrix, step)).sum(1).mean() for step in range(1, 7)
    ]
    torch.testing.assert_close(curve, torch.stack(exact), rtol=0.0, atol=1e-12)


def test_entropy_stays_between_zero_and_that_of_the_uniform_law(operator: tuple[Tensor, Tensor]) -> None:
    curve = entropy_curve(*operator, torch.arange(5), max_steps=50, tolerance=-1.0)
    assert len(curve) == 50
    assert (curve >= 0).all()
    assert (curve <= math.log(20)).all()


def test_the_curve_ends_when_a_step_adds_nothing(operator: tuple[Tensor, Tensor]) -> None:
    curve = entropy_curve(*operator, torch.arange(20))
    assert 1 < len(curve) < 50
    assert curve[-1] - curve[-2] < 1e-4 * math.log(20)


def test_the_knee_is_where_a_steep_rise_turns_flat() -> None:
    curve = torch.cat([torch.linspace(0.5, 3.0, 6), torch.full((10,), 3.0)])
    assert diffusion_time(curve, 100) == 6


def test_a_curve_that_stopped_early_has_the_knee_of_the_whole_one() -> None:
    whole = 3 - 2.5 * torch.exp(-torch.arange(250) / 3.0)
    assert diffusion_time(whole[:40], 100) == diffusion_time(whole, 100)


@pytest.mark.parametrize(("size", "time"), [(1000, 6), (2, 1)])
def test_without_a_rise_the_time_is_the_logarithm_of_the_size(size: int, time: int) -> None:
    assert diffusion_time(torch.full((5,), 2.0), size) == time
