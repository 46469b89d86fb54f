"""Periodic Q-learning on tables: each period is a stochastic regression on one frozen target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .errors import InvalidProcess, InvalidSetting
from .periods import check_discount, equal_periods
from .processes import MDP, Array, optimal_values
from .regression import Regression, StepSize, check_step_size
from .sampling import Sampling, Source, make_source
from .schedules import Geometric, Listed, Schedule, Triggered, optimal


class PeriodicQ(BaseEstimator):  # type: ignore[misc]
    """Q-learning whose target is refreshed by a schedule.

    ``Q^(n+1)`` is what K_n asynchronous steps ``Q(s,a) += eta (r + gamma max Q^n(s') - Q(s,a))`` make of ``Q^n``: an
    inexact Bellman step, whose error falls with K_n. Entries that a period does not see stay as they were.

    Args:
        gamma: Discount in [0, 1).
        budget: Updates in all.
        schedule: ``geometric`` or ``constant``, spread over the budget in ``periods`` periods; ``triggered``;
            ``anytime`` for ``Geometric`` from K_0 = ``first``; lengths of periods; or any ``Schedule``.
        periods: Number of periods for ``geometric`` and ``constant``.
        first: First period of ``anytime``, and the interval at which ``triggered`` looks.
        step_size: ``mean`` for one over the visits of the period, a constant in (0, 1], or ``("harmonic", a, b)``
            for ``min(1, a / (k + b))`` at the period's k-th update.
        sampling: ``uniform`` draws pairs alike, ``generative`` takes them in turn, ``behaviour`` follows ``policy``
            from episode to episode.
        policy: Chance of each action for ``behaviour``, shape (S, A); all alike if not given.
        initial: First action values, shape (S, A); zeros if not given.
        random_state: Seed.

    Attributes:
        Q_: Action values, shape (S, A).
        policy_: Best action of each state, shape (S,).
        periods_: Lengths of the periods, the last one cut by the budget.
        error_trace_: ``|Q^n - Q*|`` in the sup norm before the first period and after each; None if the process is not
            known.
        unseen_: Pairs (s, a) that were never updated.
    """

    def __init__(
        self,
        gamma: float = 0.99,
        budget: int = 100_000,
        schedule: str | Sequence[int] | Schedule = "geometric",
        *,
        periods: int = 40,
        first: int = 1000,
        step_size: StepSize = "mean",
        sampling: Sampling = "uniform",
        policy: ArrayLike | None = None,
        initial: ArrayLike | None = None,
        random_state: int = 0,
    ) -> None:
        self.gamma = gamma
        self.budget = budget
        self.schedule = schedule
        self.periods = periods
        self.first = first
        self.step_size = step_size
        self.sampling = sampling
        self.policy = policy
        self.initial = initial
        self.random_state = random_state

    def fit(self, process: Any, y: None = None) -> Self:
        """Learn action values from samples of a process.

        Args:
            process: An ``MDP``, or a gymnasium environment: with a table ``P`` (toy text) it is read as an ``MDP``,
                without one it is stepped.
            y: Ignored; scikit-learn's pipelines pass it.

        Raises:
            InvalidProcess: If it is neither, or has no discrete spaces.
            InvalidSetting: If a parameter is out of range.
        """
        schedule = self._make_schedule()
        step_size = check_step_size(self.step_size)
        known = _known(process)
        source = make_source(
            known or process,
            self.sampling,
            None if self.policy is None else np.asarray(self.policy, np.float64),
            np.random.default_rng(self.random_state),
        )
        looks = isinstance(schedule, Triggered)
        optimum = None if known is None else optimal_values(known, self.gamma)
        run = Regression(source, self._first_values(source), self.gamma, step_size)
        trace = [run.distance(optimum)]
        self.periods_: list[int] = []
        while run.updates < self.budget:
            # A triggered schedule that was not content looks again after `first` updates more.
            ahead = schedule.next_update - run.updates
            run.draw(min(ahead if ahead > 0 else self.first, self.budget - run.updates))
            seen = {"step": run.updates, "td": run.difference(known) if looks else 0.0}
            if schedule.step(seen) or run.updates == self.budget:
                self.periods_.append(run.refresh())
                trace.append(run.distance(optimum))
        self.Q_ = run.values
        self.policy_ = self.Q_.argmax(1)
        self.error_trace_ = None if optimum is None else np.array(trace)
        self.unseen_ = np.argwhere((run.visits == 0).reshape(self.Q_.shape))
        return self

    def _first_values(self, source: Source) -> Array:
        shape = (source.states, source.actions)
        values = np.zeros(shape) if self.initial is None else np.array(self.initial, np.float64)
        if values.shape != shape or not np.isfinite(values).all():
            raise InvalidSetting(
                f"initial has shape {values.shape}", f"give finite action values of shape {shape}"
            )
        return values

    def _make_schedule(self) -> Schedule:
        check_discount(self.gamma)
        if self.budget < 1:
            raise InvalidSetting(f"budget is {self.budget}", "give at least one update")
        chosen = self.schedule
        if isinstance(chosen, Schedule):
            # A copy at its beginning: fitting again must not go on where the last fit stopped.
            return attrs.evolve(chosen)
        if not isinstance(chosen, str):
            return Listed(chosen)
        made: dict[str, Callable[[], Schedule]] = {
            "geometric": lambda: optimal(self.gamma, self.budget, self.periods),
            "constant": lambda: Listed(equal_periods(self.budget, self.periods).tolist()),
            "anytime": lambda: Geometric(self.gamma, self.first),
            "triggered": lambda: Triggered(shortest=self.first),
        }
        if chosen not in made:
            raise InvalidSetting(
                f"schedule is {chosen!r}", f"give one of {', '.join(made)}, lengths or a Schedule"
            )
        return made[chosen]()


def _known(process: Any) -> MDP | None:
    """The process with its table, if it has one."""
    if isinstance(process, MDP):
        return process
    if not hasattr(process, "unwrapped"):
        raise InvalidProcess(f"{type(process).__name__} was given", "give an MDP or a gymnasium environment")
    return MDP.from_env(process) if hasattr(process.unwrapped, "P") else None
