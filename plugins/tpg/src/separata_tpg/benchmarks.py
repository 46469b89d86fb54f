"""Speed of window sums against forms whose time grows with k."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from separata.claims import Race, Trial

from .windows import forward_sums

Array = NDArray[np.float64]


def window_sums(values: Array, k: int) -> Array:
    """Our sums of k + 1 values."""
    return np.asarray(forward_sums(torch.from_numpy(values), k).numpy())


def step_by_step(values: Array, k: int) -> Array:
    """A sum of k + 1 values for each step in turn."""
    return np.array([values[t : t + k + 1].sum() for t in range(len(values))])


def sliding_sums(values: Array, k: int) -> Array:
    """Sums over numpy's sliding windows."""
    padded = np.concatenate([values, np.zeros(k)])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, k + 1).sum(-1))


def steps(trial: Trial) -> Iterator[Race]:
    """Yield one race for each number of steps, k = 100."""
    for size in (10_000, 100_000, 1_000_000):
        yield _race(size, np.random.default_rng(trial.seed).standard_normal(size), 100)


def lags(trial: Trial) -> Iterator[Race]:
    """Yield one race for each k, 200,000 steps."""
    values = np.random.default_rng(trial.seed).standard_normal(200_000)
    for k in (10, 100, 1000):
        yield _race(k, values, k)


def _race(size: int, values: Array, k: int) -> Race:
    return Race(size, partial(window_sums, values, k), partial(sliding_sums, values, k))
