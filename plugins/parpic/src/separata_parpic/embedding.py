"""Where diffusion brings random signals: the coordinates in which vertices are clustered."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .diffusion import diffuse, diffusion_time, entropy_curve


class Embedding(NamedTuple):
    """Signals after diffusion, float32, shape (n, components); the steps taken; the entropy curve that chose them."""

    signals: Tensor
    steps: int
    curve: Tensor


def embed(
    operator: Tensor,
    stationary: Tensor,
    generator: torch.Generator,
    *,
    time: str | int = "knee",
    n_components: str | int = 100,
    n_probes: str | int = 100,
    standardize: bool = True,
    normalize: bool = True,
) -> Embedding:
    """Diffuse random signals for as long as the entropy of the operator's walks says; see ``ParPIC``.

    Args:
        operator: Reversible and row-stochastic, dense or sparse CSR, shape (n, n).
        stationary: What it is reversible with respect to, shape (n,).
        generator: On the CPU; draws the walks' starts and the signals.
        time: Steps, or ``knee``.
        n_components: Random signals: a number, ``sqrt``, or ``full`` for each vertex's own indicator.
        n_probes: Walks that estimate the entropy: a number, or ``sqrt``.
        standardize: Centre and scale the signals by the stationary law.
        normalize: Divide each vertex's signals by their norm.
    """
    # Single precision is enough once the operator is built, and halves time and memory.
    walk, law = operator.to(torch.float32), stationary.to(torch.float32)
    size, curve = len(law), torch.zeros(0, dtype=torch.float64)
    if time == "knee":
        starts = torch.randperm(size, generator=generator)[: _count(n_probes, size)]
        curve = entropy_curve(walk, law, starts.to(law.device))
        steps = diffusion_time(curve, size)
    else:
        steps = int(time)
    signals = _signals(n_components, size, generator).to(law.device)
    if standardize:
        # The operator keeps constants: taken away beforehand, they cost no precision.
        signals = diffuse(walk, signals - law @ signals, steps)
        signals = signals - law @ signals
        signals = signals / _or_one((law @ signals**2).sqrt())
    else:
        signals = diffuse(walk, signals, steps)
    if normalize:
        signals = signals / _or_one(signals.norm(dim=1, keepdim=True))
    return Embedding(signals, steps, curve)


def _signals(wanted: str | int, size: int, generator: torch.Generator) -> Tensor:
    if wanted == "full":
        return torch.eye(size)
    signals = torch.rand(size, _count(wanted, size), generator=generator)
    signals /= signals.norm(dim=0)
    return signals


def _count(wanted: str | int, size: int) -> int:
    return max(min(size, 100), math.isqrt(size)) if wanted == "sqrt" else min(int(wanted), size)


def _or_one(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, 1.0)
