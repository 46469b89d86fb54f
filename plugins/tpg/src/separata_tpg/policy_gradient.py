"""The truncated policy gradient with its standard error, for one run or many at once."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from separata.estimates import Estimate

from .errors import InvalidSetting
from .longrun import bandwidth, long_run_variance
from .windows import contributions, forward_sums

Array = NDArray[np.float64]
PAST = 50
OPTIONS = {
    "form": ("ht", "hajek"),
    "edge": ("pad", "drop"),
    "baseline": (None, "past"),
    "center": ("global", "local"),
}


@attrs.frozen
class Truncated:
    """Estimates for one k.

    Args:
        k: Later outcomes that count for a decision.
        value: Estimates, shape (...).
        std_error: Their standard errors, shape (...).
        influence: Contribution of each decision, shape (..., T); their mean is the value.
    """

    k: int
    value: Any
    std_error: Any
    influence: Array

    @property
    def estimate(self) -> Estimate:
        """The estimate of a single run."""
        return Estimate(float(self.value), float(self.std_error))


def truncated(
    outcomes: ArrayLike,
    arms: ArrayLike,
    p: ArrayLike = 0.5,
    k: int = 0,
    *,
    form: str = "ht",
    edge: str = "pad",
    discount: float = 1.0,
    baseline: str | None = None,
    center: str = "global",
    lags: int | None = None,
) -> Truncated:
    """Estimate the effect of always against never treating (TPG estimator with k).

    Args:
        outcomes: Shape (..., T); each run by itself.
        arms: 0 or 1, shape (..., T), drawn independently.
        p: Chance of arm 1, broadcastable to (..., T).
        k: Later outcomes that count for a decision; 0 is the Horvitz-Thompson difference in means.
        form: ``ht`` weighs by ``(a - p) / (p (1 - p))``; ``hajek`` takes the difference of the two arms' weighted
            means, which is biased by O(1/T) and varies less where outcomes are far from 0.
        edge: ``pad`` cuts windows at the end; ``drop`` leaves the last k decisions out.
        discount: Weight of an outcome against the one before it.
        baseline: ``past`` subtracts the mean of the 50 outcomes before any decision in reach: same mean, less noise.
        center: See ``long_run_variance``.
        lags: Lags of the standard error; ``bandwidth`` if None.

    Raises:
        InvalidSetting: If an option is none of its words, or the discount lies outside 0 to 1.
    """
    _check({"form": form, "edge": edge, "baseline": baseline, "center": center}, discount)
    values = np.asarray(outcomes, np.float64)
    treated = np.asarray(arms, np.float64)
    chance = np.asarray(p, np.float64)
    if baseline == "past":
        values = values - past_mean(values, k)
    y, a, q = (torch.from_numpy(np.ascontiguousarray(item)) for item in (values, treated, chance))
    kept = max(values.shape[-1] - k, 1) if edge == "drop" else values.shape[-1]
    if form == "ht":
        influence = contributions(y, a, q, k, discount).numpy()[..., :kept]
    else:
        sums = forward_sums(y, k, discount).numpy()[..., :kept]
        influence = _hajek(sums, treated[..., :kept], np.broadcast_to(chance, values.shape)[..., :kept])
    chosen = bandwidth(kept, k) if lags is None else lags
    std_error = np.sqrt(long_run_variance(influence, chosen, center=center) / kept)
    return Truncated(k, influence.mean(-1), std_error, influence)


def past_mean(outcomes: Array, k: int, count: int = PAST) -> Array:
    """Mean of the last ``count`` outcomes before s - k, for each s; shape (..., T).

    No decision whose window holds outcome s has touched them, so subtracting it leaves the expectation as it is. The
    first k + 1 outcomes have nothing before them and keep their level.
    """
    steps = outcomes.shape[-1]
    sums = np.concatenate([np.zeros((*outcomes.shape[:-1], 1)), np.cumsum(outcomes, axis=-1)], axis=-1)
    end = np.clip(np.arange(steps) - k, 0, None)
    start = np.clip(end - count, 0, None)
    return np.asarray((sums[..., end] - sums[..., start]) / np.maximum(end - start, 1))


def _check(given: dict[str, str | None], discount: float) -> None:
    for name, value in given.items():
        if value not in OPTIONS[name]:
            raise InvalidSetting(f"{name} is {value!r}", f"it is {' or '.join(map(str, OPTIONS[name]))}")
    if not 0 <= discount <= 1:
        raise InvalidSetting(f"discount is {discount}", "it lies between 0 and 1")


def _hajek(sums: Array, arms: Array, chance: Array) -> Array:
    """Influence values of the difference of weighted means, with the difference as their own mean."""
    treated, control = arms / chance, (1 - arms) / (1 - chance)
    share_1, share_0 = treated.mean(-1, keepdims=True), control.mean(-1, keepdims=True)
    mean_1 = (treated * sums).mean(-1, keepdims=True) / share_1
    mean_0 = (control * sums).mean(-1, keepdims=True) / share_0
    return np.asarray(
        treated / share_1 * (sums - mean_1) - control / share_0 * (sums - mean_0) + mean_1 - mean_0
    )
