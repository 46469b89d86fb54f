"""What the analysis promises: bias and noise of a schedule, the schedule for a target, the audit of a constant one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import ArrayLike

from .errors import InvalidSetting, TUFNotice
from .periods import (
    AVERAGING,
    Integers,
    check_discount,
    equal_periods,
    growth,
    optimal_periods,
    periods_needed,
)


@attrs.frozen(kw_only=True)
class Problem:
    """What the bounds have to know of a learning problem.

    Args:
        gamma: Discount in [0, 1).
        noise: Standard deviation of ``r + gamma max Q(s')`` around its mean; ``1 / (1 - gamma)``, the largest for
            rewards in [0, 1], if not given.
        coverage: Share of updates that the rarest pair of state and action gets, in (0, 1].
        span: Bound on ``|Q0 - Q*|``; ``1 / (1 - gamma)`` if not given.
        pairs: States times actions, if the noise shall be that of the worst of them: ``sqrt(2 log(2 S A))`` times
            that of one, the maximum of Gaussians.

    Raises:
        InvalidSetting: If one of them is out of range.
    """

    gamma: float
    noise: float = attrs.field()
    coverage: float = 1.0
    span: float = attrs.field()
    pairs: int = 0

    @noise.default
    def _noise(self) -> float:
        return 1 / (1 - check_discount(self.gamma))

    @span.default
    def _span(self) -> float:
        return 1 / (1 - check_discount(self.gamma))

    def __attrs_post_init__(self) -> None:
        check_discount(self.gamma)
        positive = {"noise": self.noise, "coverage": self.coverage, "span": self.span}
        wrong = [f"{name} is {value}" for name, value in positive.items() if not 0 < value < math.inf]
        if wrong or self.coverage > 1 or self.pairs < 0:
            raise InvalidSetting(
                ", ".join(wrong) or f"coverage is {self.coverage}, pairs {self.pairs}",
                "noise and span are positive, coverage lies in (0, 1]; a pair that is never seen is never learned",
            )

    @property
    def scale(self) -> float:
        """Error of a mean over one update."""
        worst = math.sqrt(2 * math.log(2 * self.pairs)) if self.pairs else 1.0
        return worst * self.noise / math.sqrt(self.coverage)

    @property
    def first_period(self) -> int:
        """Updates after which every pair has likely been seen: ``log(2 S A) / coverage``."""
        return math.ceil(math.log(2 * max(self.pairs, 1)) / self.coverage)


@attrs.frozen
class Bound:
    """The two terms of the bound on ``|Q^N - Q*|``, in the unit of rewards."""

    bias: float
    noise: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.bias + self.noise


def error_bound(problem: Problem, lengths: ArrayLike | Sequence[int]) -> Bound:
    """The bound for periods of given lengths: ``gamma^N span`` and ``sum_n gamma^(N-1-n) sigma / sqrt(xi K_n)``.

    Raises:
        InvalidSetting: If there is no period, or one of no length.
    """
    found = np.asarray(lengths, np.float64)
    if found.ndim != 1 or not found.size or not (found > 0).all():
        raise InvalidSetting(f"periods are {lengths!r}", "give at least one positive length")
    discounts = problem.gamma ** np.arange(found.size - 1, -1, -1, dtype=np.float64)
    noise = problem.scale * float(discounts @ found**-AVERAGING)
    return Bound(problem.gamma**found.size * problem.span, noise)


@attrs.frozen
class Plan:
    """Periods with the bound they keep, beside the best equal periods of the same budget."""

    lengths: Integers
    bound: Bound
    equal_lengths: Integers
    equal_bound: Bound

    @property
    def budget(self) -> int:
        """Updates in all."""
        return int(self.lengths.sum())


def plan_budget(problem: Problem, budget: int) -> Plan:
    """The number of periods, growing and equal, whose bound is smallest at a budget of updates.

    Raises:
        InvalidSetting: If the budget is too small for one period that sees every pair.
    """
    floor = problem.first_period
    if budget < floor:
        raise InvalidSetting(
            f"a budget of {budget} updates", f"seeing every pair takes about {floor}: give at least that many"
        )
    counts = _counts(problem, budget, floor)
    growing = _best(problem, [optimal_periods(problem.gamma, budget, n, minimum=floor) for n in counts])
    equal = _best(problem, [equal_periods(budget, n) for n in counts])
    bound = error_bound(problem, growing)
    if bound.total >= problem.span:
        warnings.warn(
            f"the bound of {bound.total:.4g} says no more than the span of {problem.span:.4g}: the budget is too small "
            "for such noise and coverage",
            TUFNotice,
            stacklevel=2,
        )
    return Plan(growing, bound, equal, error_bound(problem, equal))


def recommend(problem: Problem, error: float) -> Plan:
    """The growing periods that bring the bound down to an error: half of it bias, half noise.

    The number of periods is the smallest with ``gamma^N span <= error / 2``, the budget follows from
    ``sigma / sqrt(xi T) ((1 - g^N) / (1 - g))^(3/2) <= error / 2`` (Hölder's equality at the optimum).

    Raises:
        InvalidSetting: If the error is not positive.
    """
    count = periods_needed(problem.gamma, problem.span, error / 2)
    base = growth(problem.gamma)
    series = float(np.sum(base ** np.arange(count, dtype=np.float64)))
    budget = math.ceil(series**3 * (problem.scale / (error / 2)) ** 2)
    floor = problem.first_period
    # Whole lengths and the floor cost a little; whole numbers of updates are added until the bound is kept.
    budget = max(budget, count * floor)
    while True:
        lengths = optimal_periods(problem.gamma, budget, count, minimum=floor)
        bound = error_bound(problem, lengths)
        if bound.total <= error:
            break
        budget += max(1, budget // 1000)
    equal = plan_budget(problem, budget)
    return Plan(lengths, bound, equal.equal_lengths, equal.equal_bound)


def audit(problem: Problem, interval: int, budget: int) -> dict[str, float]:
    """How a constant interval fares beside the best ones at the same budget.

    Args:
        problem: The learning problem.
        interval: Updates between two refreshes.
        budget: Updates in all.

    Returns:
        Periods, bias, noise and bound of the interval; the bounds of the best interval and of growing periods; and
        ``lost``, the interval's bound over that of growing periods.

    Raises:
        InvalidSetting: If the interval is longer than the budget.
    """
    if not 1 <= interval <= budget:
        raise InvalidSetting(
            f"an interval of {interval} in {budget} updates", "give at least one whole period"
        )
    count = budget // interval
    bound = error_bound(problem, np.full(count, interval))
    best = plan_budget(problem, budget)
    return {
        "periods": count,
        "bias": bound.bias,
        "noise": bound.noise,
        "bound": bound.total,
        "best_interval": round(budget / len(best.equal_lengths)),
        "bound_of_best_interval": best.equal_bound.total,
        "bound_of_growing": best.bound.total,
        "lost": bound.total / best.bound.total,
    }


def _counts(problem: Problem, budget: int, floor: int) -> list[int]:
    """Numbers of periods worth looking at: beyond the last one the bias is nothing beside the least noise."""
    least = problem.scale / math.sqrt(budget)
    enough = periods_needed(problem.gamma, problem.span, min(problem.span, least / 1000))
    most = min(enough, budget // floor)
    return sorted({round(count) for count in np.geomspace(1, most, 400)})


def _best(problem: Problem, candidates: Sequence[Integers]) -> Integers:
    return min(candidates, key=lambda lengths: error_bound(problem, lengths).total)
