"""Lengths of the periods between two refreshes of the target, as numbers.

An inexact Bellman step of K updates errs by ``K^-p``; N of them end at ``gamma^N |Q0 - Q*| + sum_n gamma^(N-1-n) e_n``
(triangle inequality on the contraction). At a fixed sum of the K_n the second term is smallest where
``K_n ~ gamma^(-n / (1 + p))``, for the averages of Q-learning (p = 1/2) ``gamma^(-2n/3)``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidSetting

Integers = NDArray[np.int64]
AVERAGING = 0.5


def check_discount(gamma: float) -> float:
    """The discount, if it is one.

    Raises:
        InvalidSetting: If it does not lie in [0, 1).
    """
    if not 0 <= gamma < 1:
        raise InvalidSetting(
            f"gamma is {gamma}", "give 0 <= gamma < 1: without discounting no Bellman step contracts"
        )
    return gamma


def growth(gamma: float, rate: float = AVERAGING) -> float:
    """How much shorter each period is than the next: ``gamma^(1 / (1 + p))``.

    Args:
        gamma: Discount in [0, 1).
        rate: p, if a period of K updates errs by ``K^-p``; 1/2 for averages of noisy samples, 0 for an error
            that no length mends.

    Raises:
        InvalidSetting: If the discount or the rate is out of range.
    """
    if not rate >= 0:
        raise InvalidSetting(f"rate is {rate}", "an error K^-p has p of at least 0")
    return float(check_discount(gamma) ** (1 / (1 + rate)))


def optimal_periods(
    gamma: float, budget: int, periods: int, *, rate: float = AVERAGING, minimum: int = 1
) -> Integers:
    """The lengths of a given number of periods that make the noise at the end smallest.

    ``K_n = T (1 - g) g^(N-1-n) / (1 - g^N)`` with ``g = gamma^(1 / (1 + p))``; periods that would be shorter than
    the minimum get the minimum, and the others share the rest in the same way.

    Args:
        gamma: Discount in [0, 1).
        budget: T, updates in all.
        periods: N.
        rate: p, see ``growth``.
        minimum: Shortest period, such as what it takes to visit every pair.

    Returns:
        int64 of shape (N,), not decreasing, with the budget as its sum.

    Raises:
        InvalidSetting: If the budget does not hold so many periods of the minimum.
    """
    base = growth(gamma, rate)
    if periods < 1 or minimum < 1 or budget < periods * minimum:
        raise InvalidSetting(
            f"a budget of {budget} for {periods} periods of at least {minimum}",
            "give at least one period, and a budget of at least their number times the minimum",
        )
    weights = base ** np.arange(periods - 1, -1, -1, dtype=np.float64)
    lengths = np.full(periods, float(minimum))
    # Lengths grow with n, so those below the minimum come first; from `first` on the optimum keeps it by itself.
    left = budget - minimum * np.arange(periods)
    first = int(np.argmax(left * weights / np.cumsum(weights[::-1])[::-1] >= minimum))
    lengths[first:] = left[first] * weights[first:] / weights[first:].sum()
    return rounded(lengths)


def equal_periods(budget: int, periods: int) -> Integers:
    """A budget in periods of the same length, to one.

    Args:
        budget: Updates in all.
        periods: How many; at most the budget.

    Raises:
        InvalidSetting: If there are more periods than updates.
    """
    if not 1 <= periods <= budget:
        raise InvalidSetting(
            f"{periods} periods of {budget} updates", "give at least one period, and one update for each"
        )
    return rounded(np.full(periods, budget / periods))


def periods_needed(gamma: float, span: float, error: float) -> int:
    """The fewest periods after which the first error has shrunk enough: ``gamma^N span <= error``.

    Args:
        gamma: Discount in [0, 1).
        span: Bound on ``|Q0 - Q*|``, in the unit of rewards.
        error: What may be left of it.

    Raises:
        InvalidSetting: If the span or the error is not positive.
    """
    check_discount(gamma)
    if not (span > 0 and error > 0):
        raise InvalidSetting(f"span is {span}, error is {error}", "give positive numbers")
    if gamma == 0 or error >= span:
        return 1
    return max(1, math.ceil(math.log(error / span) / math.log(gamma) - 1e-12))


def rounded(lengths: NDArray[np.float64]) -> Integers:
    """Whole lengths whose sums up to any period are those of the given ones, rounded: nothing drifts."""
    ends = np.rint(np.cumsum(lengths)).astype(np.int64)
    return np.diff(ends, prepend=0)
