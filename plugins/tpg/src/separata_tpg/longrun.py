"""Long-run variance of a dependent series by Newey and West, in time linear in its length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bandwidth(steps: int, k: int) -> int:
    """Lags for contributions over k + 1 outcomes: ``max(T^(1/3), 2k)``, since neighbours share outcomes by design."""
    return max(int(np.floor(np.cbrt(steps) + 1e-9)), 2 * k)


def long_run_variance(values: Array, lags: int, *, center: str = "global") -> Array:
    """Newey-West estimate ``G(0) + 2 sum_l (1 - l / (L + 1)) G(l)`` of centred values.

    The Bartlett weights are those of a box convolved with itself: the estimate is the mean square of moving sums of
    length L + 1 over the zero-padded series. So it is never negative and costs O(T) whatever the lags.

    Args:
        values: Shape (..., T).
        lags: L, the largest lag that counts.
        center: ``global`` subtracts the mean. ``local`` subtracts a moving mean, for a level that drifts: the global
            mean leaves the drift in the variance, which errs on the safe side.

    Returns:
        Shape (...).
    """
    steps = values.shape[-1]
    lags = min(lags, steps - 1)
    centred = values - (
        _moving_mean(values, 10 * (lags + 1)) if center == "local" else values.mean(-1, keepdims=True)
    )
    sums = np.zeros((*values.shape[:-1], steps + 2 * lags + 1))
    np.cumsum(centred, axis=-1, out=sums[..., lags + 1 : lags + 1 + steps])
    sums[..., lags + 1 + steps :] = sums[..., lags + steps, None]
    moving = sums[..., lags + 1 :] - sums[..., : -(lags + 1)]
    return np.asarray(np.einsum("...t,...t->...", moving, moving) / (steps * (lags + 1)))


def _moving_mean(values: Array, width: int) -> Array:
    steps = values.shape[-1]
    if width >= steps:
        return np.asarray(values.mean(-1, keepdims=True))
    sums = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    low = np.clip(np.arange(steps) - width // 2, 0, steps - width)
    return np.asarray((sums[..., low + width] - sums[..., low]) / width)
