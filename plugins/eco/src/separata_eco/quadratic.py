"""A noisy quadratic with its optimum between the points of the weights' grid: what rounding costs, and no more."""

from __future__ import annotations

import math
from typing import Literal

import torch

from separata_mixfp4.formats import Rounding

from .compensation import Compensation
from .optimizers import ECOSGD
from .parameter import QuantizedParameter
from .quantizers import quantizer

DIMENSIONS = 400
NOISE = 0.3
STEPS = 4000
MOMENTUM = 0.9
LAST_RATE = 1e-3
RUNS = 8


def final_loss(
    lr: float,
    compensation: Compensation,
    rounding: Rounding,
    *,
    seed: int,
    start: Literal["zero", "normal"] = "zero",
    steps: int = STEPS,
    runs: int = RUNS,
) -> float:
    """Mean loss after training several quadratics ``sum(h (w - o)^2) / 2``.

    Curvatures h go evenly from 0.1 to 1, optima o are standard normal, each gradient has normal noise of 0.3, and the
    learning rate falls along a cosine to a thousandth. Runs are rows with one scale each, so that none sees another.

    Args:
        lr: First learning rate.
        compensation: What becomes of rounding errors.
        rounding: ``stochastic`` or ``nearest_even``.
        seed: Of optima, noise and rounding.
        start: Weights are zero, or standard normal, at first.
        steps: Of training.
        runs: How many quadratics.
    """
    generator = torch.Generator().manual_seed(seed)
    curvature = torch.linspace(0.1, 1, DIMENSIONS)
    optimum = torch.randn(runs, DIMENSIONS, generator=generator)
    first = torch.zeros_like(optimum) if start == "zero" else torch.randn(optimum.shape, generator=generator)
    weight = QuantizedParameter.from_dense(first, quantizer("fp8_e4m3", "row"))
    optimizer = ECOSGD(
        [weight],
        lr,
        MOMENTUM,
        dampening=MOMENTUM,
        compensation=compensation,
        rounding=rounding,
        seed=seed,
    )
    noise = torch.empty(runs, DIMENSIONS)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * _cosine(step / steps)
        weight.grad = curvature * (weight.dequantize() - optimum) + noise.normal_(generator=generator).mul_(
            NOISE
        )
        optimizer.step()
    return float((curvature * (weight.dequantize() - optimum) ** 2).sum(-1).mean() / 2)


def _cosine(progress: float) -> float:
    return LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * progress)) / 2
