"""Schedules beside each other on one process: the error that each is left with, at its best number of periods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from .errors import InvalidSetting
from .periodic_q import PeriodicQ
from .periods import AVERAGING
from .processes import MDP
from .sampling import Sampling
from .schedules import optimal


@attrs.frozen
class Score:
    """What a schedule is left with at a budget.

    Args:
        schedule: Its name.
        budget: Updates in all.
        periods: The number of periods at which it is best; None for a schedule that has none to choose.
        error: Mean over seeds of the sup norm of ``Q - Q*``, in the unit of rewards.
        std_error: Standard error of that mean.
    """

    schedule: str
    budget: int
    periods: int | None
    error: float
    std_error: float


def compare(
    process: MDP | Any,
    gamma: float,
    budgets: Iterable[int],
    schedules: Sequence[str] = ("geometric", "constant"),
    *,
    counts: Sequence[int] = (5, 10, 20, 40, 80, 120),
    seeds: Sequence[int] = tuple(range(5)),
    sampling: Sampling = "uniform",
    first: int = 1000,
) -> Iterator[Score]:
    """Yield the best of each schedule at each budget.

    ``geometric`` and ``constant`` are both tuned: each number of periods is tried with all seeds, the one with the
    smallest mean error is kept.

    Args:
        process: What ``PeriodicQ.fit`` takes; its optimum must be known.
        gamma: Discount.
        budgets: Updates in all.
        schedules: Names that ``PeriodicQ`` knows, and ``rate=p`` for periods that grow by ``gamma^(-1 / (1 + p))``.
        counts: Numbers of periods to try; those above a budget are left out.
        seeds: One run for each.
        sampling: Where samples come from.
        first: First period of ``anytime``, interval of ``triggered``.

    Raises:
        InvalidSetting: If a schedule is unknown, or the optimum is.
    """
    for budget in budgets:
        for name in schedules:
            tuned = name in ("geometric", "constant") or name.startswith("rate=")
            tried = [count for count in counts if count <= budget] if tuned else [None]
            scores = []
            for count in tried:
                errors = [
                    _error(process, gamma, budget, name, count, seed, sampling, first) for seed in seeds
                ]
                spread = float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else np.nan
                scores.append(Score(name, budget, count, float(np.mean(errors)), spread))
            if not scores:
                raise InvalidSetting(
                    f"a budget of {budget}", f"give at least {min(counts)}, or fewer periods"
                )
            yield min(scores, key=lambda score: score.error)


def _error(
    process: Any,
    gamma: float,
    budget: int,
    name: str,
    count: int | None,
    seed: int,
    sampling: Sampling,
    first: int,
) -> float:
    made = PeriodicQ(
        gamma,
        budget,
        _rated(name, gamma, budget, count or 1) if name.startswith("rate=") else name,
        periods=count or 1,
        first=first,
        sampling=sampling,
        random_state=seed,
    ).fit(process)
    if made.error_trace_ is None:
        raise InvalidSetting(
            "the process has no table", "errors need Q*; give arrays or an environment with P"
        )
    return float(made.error_trace_[-1])


def _rated(name: str, gamma: float, budget: int, count: int) -> Any:
    try:
        rate = float(name.removeprefix("rate="))
    except ValueError:
        raise InvalidSetting(f"schedule is {name!r}", f"give a number, such as rate={AVERAGING}") from None
    return optimal(gamma, budget, count, rate=rate)
