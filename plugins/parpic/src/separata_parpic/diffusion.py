"""Diffusion by a reversible operator: signals after some steps, and the step at which to stop."""

from __future__ import annotations

import math

import torch
from kneed import KneeLocator
from torch import Tensor

from .errors import InvalidSetting

MAX_STEPS = 250
TOLERANCE = 1e-4


def diffuse(operator: Tensor, signals: Tensor, steps: int) -> Tensor:
    """The signals after so many steps, ``P^t Z``, by products with the signals alone.

    Args:
        operator: Row-stochastic, dense or sparse CSR, shape (n, n).
        signals: One a column, shape (n, q).
        steps: How often the operator is applied, 0 or more.

    Returns:
        Shape (n, q).

    Raises:
        InvalidSetting: If ``steps`` is negative.
    """
    if steps < 0:
        raise InvalidSetting(f"steps is {steps}", "diffuse for 0 or more")
    for _ in range(steps):
        signals = operator @ signals
    return signals


def entropy_curve(
    operator: Tensor,
    stationary: Tensor,
    starts: Tensor,
    *,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """Mean Shannon entropy of where the walk is after 1, 2, ... steps, in nats.

    The walks from all starts are followed at once. As the operator is reversible, a row of its power is a column of
    it, rescaled: ``(P^t)_ij = pi_j (P^t)_ji / pi_i``; so no transpose is made.

    Args:
        operator: Reversible and row-stochastic, dense or sparse CSR, shape (n, n).
        stationary: What it is reversible with respect to, shape (n,).
        starts: Vertices at which walks start, int64, shape (q,).
        max_steps: Steps at most.
        tolerance: Stop once a step adds less than this share of ``log n``.

    Returns:
        Shape (steps,); each value lies between 0 and ``log n``.
    """
    size = len(stationary)
    walks = torch.zeros(size, len(starts), dtype=operator.dtype, device=operator.device)
    walks[starts, torch.arange(len(starts), device=walks.device)] = 1
    scale = stationary[:, None] / stationary[starts]
    curve: list[float] = []
    for _ in range(max_steps):
        walks = operator @ walks
        curve.append(float(torch.special.entr(scale * walks).sum(0).mean()))
        if len(curve) > 1 and curve[-1] - curve[-2] < tolerance * math.log(size):
            break
    return torch.tensor(curve, dtype=torch.float64)


def diffusion_time(curve: Tensor, size: int, *, max_steps: int = MAX_STEPS) -> int:
    """The knee of an entropy curve: walks have spread over their clusters, and not yet over the graph.

    A curve that stopped early is continued flat to ``max_steps``, so that its knee is that of the whole curve
    (Kneedle with sensitivity 1). Without a knee it is ``floor(log n)``, at least 1.

    Args:
        curve: Entropy after 1, 2, ... steps, shape (steps,).
        size: Vertices of the graph.
        max_steps: Length of the whole curve.
    """
    flat = curve[-1].repeat(max(max_steps - len(curve), 0))
    heights = torch.cat([curve, flat]).cummax(0).values.tolist()
    knee = None
    if heights[-1] > heights[0]:
        steps = range(1, len(heights) + 1)
        knee = KneeLocator(steps, heights, S=1, curve="concave", direction="increasing").knee
    return int(knee) if knee else max(1, math.floor(math.log(size)))
