"""The rate at which running requests end, and its growth, from censored counts."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from separata.estimates import Estimate

from .errors import AllCensored, InvalidLengths, InvalidSetting

Array = NDArray[np.float64]


class HazardEstimator:
    """Fits ``h(t) = p0 + eta t`` to durations in decode iterations, some of them cut off.

    Deaths over requests at risk (Kaplan and Meier's counts) in bins of time, weighted by those at risk. What was
    still running, or ended at a limit of tokens, counts as at risk and not as a death.

    Args:
        bins: Number of bins of time.
        floor: The least rate, which keeps thresholds defined.
        allow_decreasing: Let the slope be negative; otherwise it is held at 0 and the rate fitted anew.

    Attributes:
        p0_: The rate at the start, per decode iteration.
        eta_: Its growth in one iteration.
        p0_std_error_, eta_std_error_: Their standard errors, from binomial counts.
        trend_p_: Two-sided p value of Mann and Kendall's test of a trend in the binned hazard.
        hazard_, times_, at_risk_: The binned hazard, the bins' mean ages, and exposure in request-iterations.
    """

    def __init__(self, bins: int = 24, floor: float = 1e-5, allow_decreasing: bool = False) -> None:
        self.bins = bins
        self.floor = floor
        self.allow_decreasing = allow_decreasing

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters and return self."""
        for name, value in params.items():
            if name not in self.get_params():
                raise InvalidSetting(f"{name} is no parameter", f"one of {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(self, lengths: Any, censored: Any = None) -> Self:
        """Learn from durations.

        Args:
            lengths: Whole numbers of decode iterations, at least 1 each.
            censored: For each whether it was cut off, and may have gone on; none if not given.

        Raises:
            InvalidLengths: If there are none, or one is no positive whole number.
        """
        given = np.asarray(lengths, dtype=np.float64)
        cut = np.zeros(given.shape, bool) if censored is None else np.asarray(censored, dtype=bool)
        if given.ndim != 1 or given.size == 0 or cut.shape != given.shape:
            raise InvalidLengths(
                f"lengths has shape {given.shape}, censored {cut.shape}",
                "give one flat list of each, not empty",
            )
        if not (np.isfinite(given).all() and (given >= 1).all() and (given == np.floor(given)).all()):
            raise InvalidLengths("a length is no whole number of at least 1", "give lengths in tokens")
        ages = given.astype(np.int64)
        deaths = np.bincount(ages[~cut] - 1, minlength=int(ages.max())).astype(np.float64)
        at_risk = np.cumsum(np.bincount(ages - 1)[::-1])[::-1].astype(np.float64)
        return self.fit_counts(deaths, at_risk)

    def fit_counts(self, deaths: Any, at_risk: Any) -> Self:
        """Learn from the deaths and the requests at risk in each iteration since the start; both have shape (T,)."""
        died, exposed = np.asarray(deaths, np.float64), np.asarray(at_risk, np.float64)
        if died.shape != exposed.shape or not exposed.sum() > 0 or (died > exposed * (1 + 1e-9)).any():
            raise InvalidLengths("deaths exceed those at risk, or nobody is", "give counts of equal length")
        if died.sum() == 0:
            warnings.warn("no request ended: the rate is a floor, not an estimate", AllCensored, stacklevel=2)
        self._bin(died, exposed)
        self._line(slope=len(self.hazard_) > 1)
        if self.eta_ < 0 and not self.allow_decreasing:
            self._line(slope=False)
        self.p0_ = max(self.p0_, self.floor)
        self.trend_p_ = _mann_kendall(self.hazard_)
        return self

    def rate(self) -> Estimate:
        """The rate at the start with its uncertainty."""
        return Estimate(self.p0_, self.p0_std_error_)

    def slope(self) -> Estimate:
        """The rate's growth in one iteration with its uncertainty."""
        return Estimate(self.eta_, self.eta_std_error_)

    p0_: float
    eta_: float

    def _bin(self, died: Array, exposed: Array) -> None:
        # Bins of equal exposure: each hazard is known about as well as the others.
        share = np.cumsum(exposed) / exposed.sum()
        bin_of = np.minimum((share - exposed / exposed.sum() / 2) * self.bins, self.bins - 1).astype(np.int64)
        total = np.bincount(bin_of, exposed, self.bins)
        kept = total > 0
        age = np.arange(len(died), dtype=np.float64)
        self.at_risk_: Any = total[kept]
        self.hazard_: Any = np.bincount(bin_of, died, self.bins)[kept] / self.at_risk_
        self.times_: Any = np.bincount(bin_of, exposed * age, self.bins)[kept] / self.at_risk_

    def _line(self, *, slope: bool) -> None:
        columns = [np.ones_like(self.times_)] + ([self.times_] if slope else [])
        design, weight = np.stack(columns, 1), self.at_risk_
        inverse = np.linalg.pinv(design.T @ (weight[:, None] * design))
        found = inverse @ design.T @ (weight * self.hazard_)
        fitted = np.clip(design @ found, self.floor, 1.0)
        # A binned hazard has variance h (1 - h) / n; the weights are n.
        spread = inverse @ (design.T * (weight * fitted * (1 - fitted))) @ design @ inverse
        self.p0_, self.p0_std_error_ = float(found[0]), math.sqrt(max(float(spread[0, 0]), 0.0))
        self.eta_ = float(found[1]) if slope else 0.0
        self.eta_std_error_ = math.sqrt(max(float(spread[1, 1]), 0.0)) if slope else 0.0


def _mann_kendall(series: Array) -> float:
    count = len(series)
    if count < 4:
        return 1.0
    score = float(np.sign(series[None, :] - series[:, None])[np.triu_indices(count, 1)].sum())
    _, ties = np.unique(series, return_counts=True)
    variance = (
        count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    ) / 18
    if variance <= 0:
        return 1.0
    z = max(abs(score) - 1, 0.0) / math.sqrt(variance)
    return float(2 * ndtr(-z))
