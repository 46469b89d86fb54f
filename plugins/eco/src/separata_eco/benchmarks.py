"""Speed of a step against torch's own AdamW, and against the same step with master weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW

from separata.claims import Race, Trial

from .optimizers import ECOAdamW
from .parameter import QuantizedParameter
from .quantizers import quantizer

SIZES = (100_000, 1_000_000, 10_000_000)
COLUMNS = 1000


def against_adamw(trial: Trial) -> Iterator[Race]:
    """Steps on one FP8 matrix with a scale a row, and on one of float32."""
    for size in SIZES:
        yield Race(size, eco_step(size, trial.seed), adamw_step(size, trial.seed))


def against_master(trial: Trial) -> Iterator[Race]:
    """Steps that carry errors in the momentum, and that keep master weights."""
    for size in SIZES:
        yield Race(size, eco_step(size, trial.seed), eco_step(size, trial.seed, compensation="master"))


def eco_step(size: int, seed: int, **options: Any) -> Callable[[], object]:
    """One step of ``ECOAdamW`` on a matrix of so many numbers.

    Args:
        size: A multiple of 1000.
        seed: Of the numbers.
        options: Of the optimizer.
    """
    start = _normal(size, seed)
    weight = QuantizedParameter.from_dense(start, quantizer("fp8_e4m3"))
    weight.grad = _normal(size, seed + 1)
    return ECOAdamW([weight], seed=seed, **options).step


def adamw_step(size: int, seed: int) -> Callable[[], object]:
    """One step of torch's ``AdamW`` on a float32 matrix of so many numbers.

    Args:
        size: A multiple of 1000.
        seed: Of the numbers.
    """
    weight = nn.Parameter(_normal(size, seed))
    weight.grad = _normal(size, seed + 1)
    return AdamW([weight], foreach=True).step


def _normal(size: int, seed: int) -> torch.Tensor:
    return torch.randn(size // COLUMNS, COLUMNS, generator=torch.Generator().manual_seed(seed))
