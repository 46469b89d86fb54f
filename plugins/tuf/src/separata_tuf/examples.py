"""Small inputs on which the conformance kit tries what the plugin offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from separata.testing import EstimatorExample, SchedulerExample

from .periodic_q import PeriodicQ
from .processes import MDP
from .schedules import Constant, Geometric, Triggered
from .schedules import optimal as make_optimal

if TYPE_CHECKING:
    import torch


def _observations(generator: torch.Generator) -> Sequence[Any]:
    import torch

    jumps = torch.randint(1, 9, (40,), generator=generator).cumsum(0).tolist()
    sizes = torch.rand(40, generator=generator, dtype=torch.float64) / torch.arange(1, 41) ** 2
    return [{"step": step, "td": sizes[place : place + 1]} for place, step in enumerate(jumps)]


def _schedule(make: Callable[[], Any], *bad: Any) -> SchedulerExample:
    return SchedulerExample(
        make=make, observations=_observations, bad=[{"step": -1}, {"step": 2.5}, {"step": True}, *bad]
    )


def constant() -> SchedulerExample:
    """A refresh every seven updates."""
    return _schedule(lambda: Constant(7))


def geometric() -> SchedulerExample:
    """Periods that grow quickly, up to a bound."""
    return _schedule(lambda: Geometric(0.7, 3.0, longest=20))


def optimal() -> SchedulerExample:
    """Eight periods, which end before the run does."""
    return _schedule(lambda: make_optimal(0.8, 120, 8))


def triggered() -> SchedulerExample:
    """Refreshes when a running mean of differences is small."""
    return _schedule(
        lambda: Triggered(scale=0.5, shortest=3, longest=30, patience=2, decay=0.5),
        {"step": 10**6},
        {"step": 10**6, "td": float("nan")},
    )


def periodic_q() -> EstimatorExample:
    """Six states, two actions, noisy rewards."""

    def data(generator: torch.Generator) -> tuple[MDP]:
        import torch

        weights = torch.rand(6, 2, 6, generator=generator, dtype=torch.float64).numpy()
        rewards = torch.rand(6, 2, generator=generator, dtype=torch.float64).numpy()
        return (MDP(weights / weights.sum(-1, keepdims=True), rewards, noise=0.5),)

    return EstimatorExample(
        make=lambda: PeriodicQ(0.9, 3000, periods=20), data=data, bad=((np.zeros((3, 2)),), (None,))
    )
