"""The inner loop: asynchronous steps towards one frozen target, many at a time."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidSetting
from .processes import MDP, Array
from .sampling import Integers, Samples, Source

StepSize: TypeAlias = float | Literal["mean"] | tuple[str, float, float]
# Samples held at once; a period may be far longer.
CHUNK = 1 << 16


def check_step_size(step_size: StepSize) -> StepSize:
    """The step size, if it is one.

    Raises:
        InvalidSetting: If it is not ``mean``, a number in (0, 1] or ``("harmonic", a, b)`` with a > 0 and b >= 0.
    """
    match step_size:
        case "mean":
            return "mean"
        case ("harmonic" as name, float() | int() as a, float() | int() as b) if a > 0 and b >= 0:
            return name, a, b
        case float() | int() if not isinstance(step_size, bool) and 0 < step_size <= 1:
            return step_size
    raise InvalidSetting(
        f"step_size is {step_size!r}",
        'give "mean", a number in (0, 1], or ("harmonic", a, b) for a / (k + b)',
    )


class Regression:
    """Action values on their way to ``T Q^n``, period after period.

    Args:
        source: Where samples come from.
        values: First action values, shape (S, A), float64; kept and changed.
        gamma: Discount.
        step_size: See ``check_step_size``.

    Attributes:
        values: Q.
        target: ``Q^n``, frozen.
        updates: Updates so far.
        visits: Updates of each pair so far, shape (S * A,).
    """

    def __init__(self, source: Source, values: Array, gamma: float, step_size: StepSize) -> None:
        self._source, self._gamma, self._step_size = source, gamma, step_size
        self.values, self.target = values, values.copy()
        self.updates = self._begun = 0
        self.visits = np.zeros(values.size, np.int64)
        self._before = self.visits.copy()
        self._last_difference = 0.0

    def draw(self, count: int) -> None:
        """Take so many samples and follow them."""
        for first in range(0, count, CHUNK):
            samples = self._source.draw(min(CHUNK, count - first))
            self._follow(samples)
            self.updates += len(samples.pairs)

    def refresh(self) -> int:
        """Freeze the values as the next target; the length of the period that ends."""
        length = self.updates - self._begun
        self.target, self._begun, self._before = self.values.copy(), self.updates, self.visits.copy()
        return length

    def difference(self, known: MDP | None) -> float:
        """Mean size of ``T Q^n - Q`` over all pairs, or of the last samples' differences if the process is unknown."""
        if known is None:
            return self._last_difference
        return float(abs(known.bellman(self.target, self._gamma) - self.values).mean())

    def distance(self, optimum: Array | None) -> float:
        """Sup norm of ``Q - Q*``; NaN if Q* is not known."""
        return np.nan if optimum is None else float(abs(self.values - optimum).max())

    def _follow(self, samples: Samples) -> None:
        follow = np.where(samples.ended, 0.0, self.target.max(1)[samples.next_states])
        flat = self.values.reshape(-1)
        differences = samples.rewards + self._gamma * follow - flat[samples.pairs]
        self._last_difference = float(abs(differences).mean())
        counts = np.bincount(samples.pairs, minlength=flat.size)
        if self._step_size == "mean":
            seen = np.maximum(self.visits - self._before + counts, 1)
            flat += np.bincount(samples.pairs, differences, flat.size) / seen
        else:
            weights = _weights(samples.pairs, self._steps(len(samples.pairs)))
            flat += np.bincount(samples.pairs, weights * differences, flat.size)
        self.visits += counts

    def _steps(self, count: int) -> Array:
        """eta of the next updates."""
        if isinstance(self._step_size, tuple):
            _, a, b = self._step_size
            first = self.updates - self._begun + 1
            return np.asarray(np.minimum(1.0, a / (np.arange(first, first + count) + b)))
        return np.full(count, float(self._step_size))


def _weights(pairs: Integers, steps: NDArray[np.float64]) -> Array:
    """What each sample counts in the end: its step times ``1 - eta`` of the pair's later ones.

    One after the other, ``Q += eta_j (y_j - Q)`` ends at ``Q + sum_j w_j (y_j - Q)`` with
    ``w_j = eta_j prod_(i > j) (1 - eta_i)`` over the later samples of the same pair.
    """
    order = np.argsort(pairs, kind="stable")
    # A step of 1 forgets what was before but for a rounding error; its logarithm stays finite.
    kept = np.cumsum(np.log1p(-np.minimum(steps, 1 - 2**-53))[order])
    ordered = pairs[order]
    last = np.searchsorted(ordered, ordered, "right") - 1
    weights: Array = np.empty(len(steps))
    weights[order] = steps[order] * np.exp(kept[last] - kept)
    return weights
