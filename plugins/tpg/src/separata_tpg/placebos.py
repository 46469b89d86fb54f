"""Placebo: fake arms on real outcomes, where the true effect is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from separata.estimates import Estimate

from .estimator import whole_numbers
from .planning import minimum_detectable_effect
from .policy_gradient import truncated

BATCH_VALUES = 2_000_000
# A stream of its own: series simulated with the same seed must not know the fake arms.
STREAM = 1


def placebo(
    outcomes: ArrayLike,
    k: Any = "lepski",
    *,
    p: float = 0.5,
    n: int = 500,
    level: float = 0.95,
    seed: int = 0,
    **settings: Any,
) -> pd.DataFrame:
    """Draw arms anew n times on the same outcomes, and see how often intervals cover 0.

    Args:
        outcomes: A real series in order of time, shape (T,).
        k: One k, several, or ``lepski`` for 0 to 10.
        p: Chance of arm 1.
        n: Draws.
        level: Coverage asked for.
        seed: Seed of the draws.
        settings: As ``truncated`` takes them.

    Returns:
        One row for each k: coverage, mean, spread of the estimates, mean standard error, and the effect that is
        detected in four of five experiments of this length.
    """
    series = np.asarray(outcomes, np.float64)
    rows = []
    z = Estimate(0.0, 1.0).interval(level)[1]
    for one in whole_numbers(k):
        # The same draws for every k, in batches that fit a laptop.
        generator, values, errors = np.random.default_rng([seed, STREAM]), [], []
        for size in _batches(n, max(1, BATCH_VALUES // len(series))):
            arms = (generator.random((size, len(series))) < p).astype(np.float64)
            found = truncated(np.broadcast_to(series, arms.shape), arms, p, one, **settings)
            values.append(found.value)
            errors.append(found.std_error)
        rows.append(_row(one, np.concatenate(values), np.concatenate(errors), z))
    return pd.DataFrame(rows)


def _batches(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _row(k: int, values: NDArray[Any], errors: NDArray[Any], z: float) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return {
        "k": k,
        "coverage": float((abs(values) <= z * errors).mean()),
        "mean": float(values.mean()),
        "spread": spread,
        "std_error": float(errors.mean()),
        "detectable": minimum_detectable_effect(spread),
    }
