"""Contributions of single decisions: the weighted sum of the outcomes that follow each of them."""

from __future__ import annotations

import torch
from torch import Tensor


def forward_sums(outcomes: Tensor, k: int, discount: float = 1.0) -> Tensor:
    """Sum each outcome and the k after it, cut at the end: ``sum_{h <= k} discount^h y_{t+h}``.

    Time O(T) without discount, whatever k, and O(T log k) with it; sums are formed in float64.

    Args:
        outcomes: Shape (..., T), floating.
        k: Later outcomes that count.
        discount: Weight of an outcome against the one before it.

    Returns:
        Shape (..., T), dtype of the outcomes.
    """
    steps = outcomes.shape[-1]
    k = min(k, max(steps - 1, 0))
    if k == 0 or discount == 0:
        return outcomes.clone()
    wide = outcomes.double()
    if discount == 1:
        # Sums of centred outcomes stay small, so that the difference of two of them keeps its digits.
        level = wide.mean(-1, keepdim=True)
        sums = torch.nn.functional.pad((wide - level).cumsum(-1), (1, 0))
        ends = torch.cat([sums[..., k + 1 :], sums[..., -1:].expand(*sums.shape[:-1], k)], dim=-1)
        counts = torch.arange(steps, 0, -1, dtype=torch.float64, device=wide.device).clamp(max=k + 1)
        return torch.addcmul(ends - sums[..., :-1], counts, level).to(outcomes.dtype)
    return _discounted(wide, k + 1, discount).to(outcomes.dtype)


def contributions(
    outcomes: Tensor, arms: Tensor, probability: Tensor, k: int, discount: float = 1.0
) -> Tensor:
    """Weigh the sum of the k + 1 outcomes from each decision on: ``w_t sum_h y_{t+h}`` (TPG estimator).

    Args:
        outcomes: Shape (..., T), floating.
        arms: 0 or 1, shape (..., T).
        probability: Chance of arm 1, broadcastable to (..., T).
        k: Later outcomes that count for a decision.
        discount: Weight of an outcome against the one before it.

    Returns:
        Shape (..., T), dtype of the outcomes; their mean over time is the estimate.
    """
    weights = (arms - probability) / (probability * (1 - probability))
    return (weights * forward_sums(outcomes, k, discount)).to(outcomes.dtype)


def contributions_reference(
    outcomes: Tensor, arms: Tensor, probability: Tensor, k: int, discount: float = 1.0
) -> Tensor:
    """The same as two loops over time and lag, in float64."""
    steps = outcomes.shape[-1]
    arms, chance = arms.double(), probability.double().expand_as(arms)
    found = torch.zeros_like(outcomes, dtype=torch.float64)
    for t in range(steps):
        weight = (arms[..., t] - chance[..., t]) / (chance[..., t] * (1 - chance[..., t]))
        for h in range(min(k, steps - 1 - t) + 1):
            found[..., t] += weight * discount**h * outcomes[..., t + h].double()
    return found


def _discounted(values: Tensor, length: int, discount: float) -> Tensor:
    """Windows by binary doubling: one of 2m is one of m and, m later, another."""
    total, offset = torch.zeros_like(values), 0
    block, size = values, 1
    while length:
        if length & 1:
            total = total + discount**offset * _later(block, offset)
            offset += size
        block = block + discount**size * _later(block, size)
        size, length = 2 * size, length >> 1
    return total


def _later(values: Tensor, steps: int) -> Tensor:
    kept = values[..., min(steps, values.shape[-1]) :]
    return torch.nn.functional.pad(kept, (0, values.shape[-1] - kept.shape[-1]))
