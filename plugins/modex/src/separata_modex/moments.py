"""Mean and variance of an extended flexible Dirichlet, split between and within advocates, in O(K)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """Mean and variances of the class probabilities, each of shape ``(..., K)``."""

    mean: Tensor
    between: Tensor
    within: Tensor


def efd_moments(concentration: Tensor, advocacy: Tensor, plausibility: Tensor) -> Moments:
    """Moments of ``sum_k w_k Dir(alpha + tau_k e_k)`` without the K x K tensor of its parts.

    An advocate's mean is ``(1 - s_k) a + s_k e_k`` with ``a = alpha / alpha_0`` and ``s_k = tau_k / (alpha_0 +
    tau_k)``. All is written in ``s`` and not as a difference of squared means, which would cancel in float32.

    Args:
        concentration: Evidence ``alpha`` shared by all advocates, ``(..., K)``, positive.
        advocacy: What each advocate adds for its own class, ``tau``, ``(..., K)``, not negative.
        plausibility: Weight ``w`` of each advocate, ``(..., K)``, rows sum to 1.

    Returns:
        The mean, the variance of the advocates' means around it, and the mean variance of an advocate; the two
        variances sum to the variance of the law.
    """
    total = concentration.sum(-1, keepdim=True)
    base = concentration / total
    share = advocacy / (total + advocacy)
    pull = plausibility * share
    pulled = pull.sum(-1, keepdim=True)
    shift = pull - pulled * base
    squared = plausibility * share.square()
    spread = base.square() * squared.sum(-1, keepdim=True) + (1 - 2 * base) * squared
    looseness = plausibility / (total + advocacy + 1)
    rest = 1 - share
    first = (looseness * rest).sum(-1, keepdim=True)
    second = (looseness * rest.square()).sum(-1, keepdim=True)
    own = looseness * share * (1 - 2 * base * rest - share)
    within = base * first - base.square() * second + own
    return Moments(base + shift, (spread - shift.square()).clamp_min(0), within.clamp_min(0))


def efd_covariance(concentration: Tensor, advocacy: Tensor, plausibility: Tensor) -> Tensor:
    """Covariance of ``sum_k w_k Dir(alpha + tau_k e_k)``, ``(..., K, K)``, without the parts' own covariances.

    Arguments are those of ``efd_moments``. With its ``a`` and ``s_k``, an advocate's mean is off ``a`` by
    ``s_k (e_k - a)``, and two of its entries have the product ``(1 - s_k) ((1 - s_k) a_i a_j + s_k (a_i [j = k] +
    a_j [i = k]))``; the sums over ``k`` are of rank two.
    """
    total = concentration.sum(-1, keepdim=True)
    base = concentration / total
    share = advocacy / (total + advocacy)
    rest = 1 - share
    squared = plausibility * share.square()
    looseness = plausibility / (total + advocacy + 1)
    mean, between, within = efd_moments(concentration, advocacy, plausibility)
    shift = mean - base
    # On the diagonal the variances stand instead.
    both = squared.sum(-1, keepdim=True) - (looseness * rest.square()).sum(-1, keepdim=True)
    single = squared + looseness * share * rest
    crossed = _outer(single, base)
    covariance = both.unsqueeze(-1) * _outer(base, base) - crossed - crossed.mT - _outer(shift, shift)
    diagonal = torch.eye(base.shape[-1], dtype=torch.bool, device=base.device)
    return torch.where(diagonal, torch.diag_embed(between + within), covariance)


def _outer(left: Tensor, right: Tensor) -> Tensor:
    return left.unsqueeze(-1) * right.unsqueeze(-2)
