"""Time against experts: the line ``t = b T + c``, fitted at once or while decoding."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import stats
from torch import Tensor

from separata.estimates import Estimate

from .errors import InvalidSetting, TooFewSamples

ENOUGH = 8  # observations before a running line decides anything


@attrs.frozen
class LatencyFit:
    """A least-squares line of seconds against distinct experts.

    Args:
        seconds_per_expert: The slope b, with its standard error.
        rest: The intercept in seconds; or, where assignments were given, a: seconds for each of them.
        r2: Share of the variance that the line explains.
        samples: Measurements behind it.
    """

    seconds_per_expert: Estimate
    rest: Estimate
    r2: float
    samples: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval of the slope, by Student's t for the few samples that a fit has."""
        if not 0 < level < 1:
            raise InvalidSetting(f"level is {level}", "it lies strictly between 0 and 1, such as 0.95")
        half = float(stats.t.ppf(0.5 + level / 2, self.samples - 2)) * self.seconds_per_expert.std_error
        return self.seconds_per_expert.value - half, self.seconds_per_expert.value + half

    def experts(self, seconds: float, assignments: float = 1.0) -> float:
        """How many experts fit into a time; with it, a target for the routing."""
        return (seconds - self.rest.value * assignments) / self.seconds_per_expert.value


def fit_latency(experts: ArrayLike, seconds: ArrayLike, assignments: ArrayLike | None = None) -> LatencyFit:
    """Fit ``t = b T + c``, or ``t = b T + a B k`` where the assignments ``B k`` are given.

    Args:
        experts: Distinct experts of each measurement, T.
        seconds: Its time.
        assignments: Its pairs of token and expert, if they differ between measurements.

    Raises:
        TooFewSamples: With fewer than three measurements, or all with equally many experts.
        InvalidSetting: If lengths differ or a figure is not finite.
    """
    hits, times = np.asarray(experts, dtype=float), np.asarray(seconds, dtype=float)
    other = np.ones_like(hits) if assignments is None else np.asarray(assignments, dtype=float)
    if not (hits.shape == times.shape == other.shape and hits.ndim == 1):
        raise InvalidSetting(
            f"shapes are {hits.shape}, {times.shape} and {other.shape}", "give one number a measurement"
        )
    if not all(np.isfinite(values).all() for values in (hits, times, other)):
        raise InvalidSetting("a measurement is NaN or infinite", "leave it out")
    design = np.stack([hits, other], axis=1)
    if len(hits) < 3 or np.linalg.matrix_rank(design) < 2:
        raise TooFewSamples(
            f"{len(hits)} measurements with {len(set(hits.tolist()))} different numbers of experts",
            "measure at least three steps, with different numbers of experts",
        )
    solution = np.linalg.lstsq(design, times, rcond=None)[0]
    residual = float(((times - design @ solution) ** 2).sum())
    spread = float(((times - times.mean()) ** 2).sum())
    covariance = np.linalg.inv(design.T @ design) * residual / (len(hits) - 2)
    slope, rest = (
        Estimate(float(value), math.sqrt(variance))
        for value, variance in zip(solution, np.diag(covariance), strict=True)
    )
    return LatencyFit(slope, rest, 1 - residual / spread if spread else math.nan, len(hits))


class LatencyLine:
    """The same line from running sums, without waiting for the device that counts the experts."""

    def __init__(self) -> None:
        self._sums = torch.zeros(5, dtype=torch.float64)

    def observe(self, experts: Tensor, seconds: float) -> None:
        """Add one measurement.

        Args:
            experts: A scalar tensor.
            seconds: The step's time.

        Raises:
            InvalidSetting: If the time is negative or not finite.
        """
        if not 0 <= seconds < math.inf:
            raise InvalidSetting(f"a step took {seconds} seconds", "measure with a monotonic clock")
        hit = experts.double()
        time = torch.full_like(hit, seconds)
        added = torch.stack([torch.ones_like(hit), hit, hit * hit, time, hit * time])
        self._sums = self._sums.to(hit.device) + added

    def target(self, seconds: float) -> Tensor:
        """How many experts fit into a time; infinity until a line that rises is known. A scalar tensor."""
        count, hits, squares, times, products = self._sums
        slope_above = count * products - hits * times
        slope_below = count * squares - hits * hits
        slope = slope_above / slope_below
        fixed = (times - slope * hits) / count
        known = (count >= ENOUGH) & (slope_below > 0) & (slope_above > 0)
        return torch.where(known, (seconds - fixed) / slope, torch.inf)

    def state_dict(self) -> dict[str, Any]:
        """The sums: count, experts, their squares, seconds, products."""
        return {"sums": self._sums.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._sums = state["sums"].clone()
