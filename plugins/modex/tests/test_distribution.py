"""The law's closed forms against limits, the mixture and draws."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Dirichlet

from separata_modex import ExtendedFlexibleDirichlet, efd_covariance, efd_moments
from separata_modex.references import efd_moments_reference


def drawn(classes: int = 4, rows: int = 6, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random parameters, float64."""
    made = torch.rand(3, rows, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return 5 * made[0] + 0.05, 5 * made[1] + 0.05, made[2] / made[2].sum(-1, keepdim=True)


@settings(max_examples=40, deadline=None)
@given(classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_moments_are_the_mixtures(classes: int, seed: int) -> None:
    given_ = drawn(classes, seed=seed)
    found, expected = efd_moments(*given_), efd_moments_reference(*given_)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-14)
    assert (found.between + found.within <= found.mean * (1 - found.mean) + 1e-14).all()
    # The variance as the authors' code writes it, in raw moments.
    alpha, tau, omega = given_
    totals = alpha.sum(-1, keepdim=True) + tau
    first = (omega / totals).sum(-1, keepdim=True)
    second = (omega / (totals * (totals + 1))).sum(-1, keepdim=True)
    variance = (
        alpha**2 * (second - first**2)
        + alpha * second
        + omega * tau * (2 * alpha + tau + 1) / (totals * (totals + 1))
        - (omega * tau / totals) ** 2
        - 2 * alpha * omega * tau * first / totals
    )
    torch.testing.assert_close(found.between + found.within, variance, rtol=1e-9, atol=1e-13)


def test_one_advocacy_for_all_gives_the_flexible_dirichlet() -> None:
    alpha, _, omega = drawn()
    tau, total = 2.5, alpha.sum(-1, keepdim=True)
    law = ExtendedFlexibleDirichlet(alpha, torch.full_like(alpha, tau), omega)
    mean = (alpha + tau * omega) / (total + tau)
    torch.testing.assert_close(law.mean, mean)
    variance = mean * (1 - mean) / (total + tau + 1)
    variance += tau**2 * omega * (1 - omega) / ((total + tau) * (total + tau + 1))
    torch.testing.assert_close(law.variance, variance)


def test_it_contains_the_plain_dirichlet() -> None:
    alpha, _, _ = drawn()
    law = ExtendedFlexibleDirichlet(alpha, torch.ones_like(alpha), alpha / alpha.sum(-1, keepdim=True))
    plain = Dirichlet(alpha)
    points = plain.sample()
    torch.testing.assert_close(law.mean, plain.mean)
    torch.testing.assert_close(law.variance, plain.variance)
    torch.testing.assert_close(law.log_prob(points), plain.log_prob(points))


def test_one_plausible_advocate_gives_its_dirichlet() -> None:
    alpha, tau, _ = drawn()
    certain = torch.eye(4, dtype=alpha.dtype)[1].expand_as(alpha)
    law, plain = ExtendedFlexibleDirichlet(alpha, tau, certain), Dirichlet(alpha + tau * certain)
    torch.testing.assert_close(law.variance, plain.variance)
    assert float(law.moments.between.max()) < 1e-15


def test_endless_advocacy_leaves_the_plausibilities() -> None:
    alpha, tau, omega = drawn()
    law = ExtendedFlexibleDirichlet(alpha, torch.full_like(tau, 1e9), omega)
    torch.testing.assert_close(law.mean, omega, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(law.variance.sum(-1), 1 - omega.square().sum(-1), rtol=1e-6, atol=1e-6)


def test_classes_may_be_renamed() -> None:
    order = torch.tensor([2, 0, 3, 1])
    given_ = drawn()
    for plain, renamed in zip(
        efd_moments(*given_), efd_moments(*(part[:, order] for part in given_)), strict=True
    ):
        torch.testing.assert_close(plain[:, order], renamed)


def test_draws_have_its_moments() -> None:
    torch.manual_seed(0)
    law = ExtendedFlexibleDirichlet(*(part[0] for part in drawn(3)))
    points = law.sample((400_000,))
    # Four standard errors of 400,000 draws lie below 2e-3.
    torch.testing.assert_close(points.mean(0), law.mean, rtol=0, atol=2e-3)
    torch.testing.assert_close(points.var(0), law.variance, rtol=0, atol=1e-3)
    entropies = torch.special.entr(points).sum(-1)
    assert float(entropies.mean()) == pytest.approx(float(law.entropy_mean), abs=2e-3)
    torch.testing.assert_close(-points.log().mean(0), law.expected_nll(), rtol=0.02, atol=0)
    # The density integrates to 1: its mean over uniform draws is 1 / area, and the area in these coordinates is 1/2.
    even = Dirichlet(torch.ones(3, dtype=torch.float64)).sample((400_000,))
    smooth = ExtendedFlexibleDirichlet(*(part[0].clamp_min(1.0) for part in drawn(3)[:2]), law.plausibility)
    assert float(smooth.log_prob(even).exp().mean() / 2) == pytest.approx(1, abs=0.02)


@settings(max_examples=30, deadline=None)
@given(classes=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_covariance_is_the_mixtures(classes: int, seed: int) -> None:
    alpha, tau, omega = drawn(classes, seed=seed)
    law = ExtendedFlexibleDirichlet(alpha, tau, omega)
    expected = -law.mean.unsqueeze(-1) * law.mean.unsqueeze(-2)
    for k in range(classes):
        own = alpha.clone()
        own[:, k] += tau[:, k]
        total = own.sum(-1)[:, None, None]
        raw = (own.unsqueeze(-1) * own.unsqueeze(-2) + torch.diag_embed(own)) / (total * (total + 1))
        expected = expected + omega[:, k, None, None] * raw
    found = law.covariance_matrix
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(found.diagonal(dim1=-2, dim2=-1), law.variance)
    assert float(found.sum(-1).abs().max()) < 1e-14
    assert float(torch.linalg.eigvalsh(found).min()) > -1e-14


def test_expected_entropy_is_the_mixtures() -> None:
    alpha, tau, omega = drawn()
    own = alpha.unsqueeze(-2) + torch.diag_embed(tau)
    total = own.sum(-1, keepdim=True)
    entropies = (own / total * (torch.digamma(total + 1) - torch.digamma(own + 1))).sum(-1)
    law = ExtendedFlexibleDirichlet(alpha, tau, omega)
    torch.testing.assert_close(law.entropy_mean, (omega * entropies).sum(-1))


@pytest.mark.parametrize("closed", [efd_moments, efd_covariance])
def test_closed_forms_have_their_gradients(closed: Any) -> None:
    inputs = [part.requires_grad_() for part in drawn(3, 2)]
    assert torch.autograd.gradcheck(closed, inputs)


def test_mutual_information_is_not_negative() -> None:
    assert (ExtendedFlexibleDirichlet(*drawn(8, 50)).mutual_information > 0).all()
