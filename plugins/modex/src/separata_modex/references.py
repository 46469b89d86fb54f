"""The moments from every advocate's Dirichlet, in float64, as a mixture's are defined."""

from __future__ import annotations

import torch
from torch import Tensor

from .moments import Moments


def efd_moments_reference(concentration: Tensor, advocacy: Tensor, plausibility: Tensor) -> Moments:
    """The same as ``efd_moments`` with the ``(..., K, K)`` tensor of all advocates' parameters."""
    weights = plausibility.double().unsqueeze(-1)
    parameters = concentration.double().unsqueeze(-2) + torch.diag_embed(advocacy.double())
    totals = parameters.sum(-1, keepdim=True)
    means = parameters / totals
    mean = (weights * means).sum(-2)
    between = (weights * (means - mean.unsqueeze(-2)).square()).sum(-2)
    within = (weights * means * (1 - means) / (totals + 1)).sum(-2)
    return Moments(mean, between, within)
