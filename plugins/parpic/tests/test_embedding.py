"""Embeddings: centred under the stationary law, of unit norm, repeatable."""

from __future__ import annotations

import torch
from torch import Tensor

from separata_parpic import embed, reversible_operator, vertex_measure


def walk(weights: Tensor) -> tuple[Tensor, Tensor]:
    return reversible_operator(weights, vertex_measure(weights))


def draws() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_standardised_signals_have_mean_0_and_variance_1_under_the_stationary_law(weights: Tensor) -> None:
    operator, law = walk(weights)
    found = embed(operator, law, draws(), normalize=False).signals.double()
    # float32 sums of twenty values of order 1.
    torch.testing.assert_close(law @ found, torch.zeros(20, dtype=torch.float64), rtol=0.0, atol=1e-6)
    torch.testing.assert_close(law @ found**2, torch.ones(20, dtype=torch.float64), rtol=0.0, atol=1e-5)


def test_normalised_signals_have_norm_1(weights: Tensor) -> None:
    found = embed(*walk(weights), draws()).signals
    torch.testing.assert_close(found.norm(dim=1), torch.ones(20))


def test_without_either_they_are_the_diffused_signals(weights: Tensor) -> None:
    operator, law = walk(weights)
    found = embed(operator, law, draws(), time=3, n_components="full", standardize=False, normalize=False)
    assert found.steps == 3
    assert len(found.curve) == 0
    torch.testing.assert_close(found.signals, torch.linalg.matrix_power(operator, 3).float())
