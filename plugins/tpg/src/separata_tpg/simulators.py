"""Experiments with a known effect: two states whose chances drift, and a queue whose load changes through the week."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from .exact import MDP

Array = NDArray[np.float64]
MINUTES = 4 * 7 * 24 * 60


def two_state(steps: int, gamma: float, generator: np.random.Generator) -> MDP:
    """Two states with drifting kernels: chance of state 1 wanders around ``(1 -+ gamma) / 2``.

    From state 0 and 1 the chance follows AR(1) paths (coefficient 0.5, noise 0.1); treatment adds 0.1 to it, clipped
    to a chance. Outcomes are 0 or 5, one more under treatment, with noise of 0.1.
    """
    noise = 0.1 * generator.standard_normal((2, steps))
    control = np.clip(lfilter([1], [1, -0.5], noise).T + (1 + gamma * np.array([-1, 1])) / 2, 0, 1)
    chances = np.stack([control, np.clip(control + 0.1, 0, 1)], axis=1)
    return MDP(np.stack([1 - chances, chances], axis=-1), np.array([[0.0, 5.0], [1.0, 6.0]]), noise=0.1)


def run(mdp: MDP, arms: NDArray[np.int64], generator: np.random.Generator) -> Array:
    """Draw outcomes of an MDP under given arms, shape (runs, T), all runs at once."""
    runs, steps = arms.shape
    draws = generator.random((steps + 1, runs))
    state = np.minimum((draws[steps][:, None] >= mdp.initial.cumsum()).sum(1), len(mdp.initial) - 1)
    outcomes = np.empty((steps, runs))
    for t in range(steps):
        arm = arms[:, t]
        outcomes[t] = mdp.rewards[t, arm, state]
        ladder = mdp.transitions[t].cumsum(-1)[arm, state, :-1]
        state = (draws[t][:, None] >= ladder).sum(1)
    return np.asarray(outcomes.T + mdp.noise * generator.standard_normal((runs, steps)))


@attrs.frozen
class Queue:
    """An emergency room in steps of a minute: people balk at a long queue and at a high price.

    Arrivals in a minute are Poisson with rate ``4 max(0, 2 - price) / (1 + 0.2 n)`` for n waiting, times a factor of
    the week and one of weekday and hour; those who can be served leave, Poisson too. The outcome is the queue's
    length. Rates of service, prices and factors are ours.

    Args:
        prices: Price without and with treatment.
        service: People served in a minute at most, on average.
        steps: Minutes.
    """

    prices: tuple[float, float] = (1.0, 1.1)
    service: float = 2.0
    steps: int = MINUTES

    def load(self) -> Array:
        """Factor of demand in each minute, shape (T,)."""
        minute = np.arange(self.steps)
        week = np.array([0.9, 1.0, 1.1, 1.0])[minute // 10080 % 4]
        weekend = np.where(minute // 1440 % 7 >= 5, 0.8, 1.0)
        return np.asarray(week * weekend * (1 + 0.4 * np.sin(2 * np.pi * (minute % 1440 - 480) / 1440)))

    def run(self, arms: NDArray[np.int64], generator: np.random.Generator) -> Array:
        """Draw queue lengths under given arms, shape (runs, T), all runs at once."""
        runs, steps = arms.shape
        demand = 4 * np.maximum(0, 2 - np.array(self.prices)) * self.load()[:steps, None]
        lengths = np.empty((steps + 1, runs))
        lengths[0] = 5
        for t in range(steps):
            rate = demand[t][arms[:, t]] / (1 + 0.2 * lengths[t])
            served = generator.poisson(self.service, runs)
            lengths[t + 1] = np.maximum(lengths[t] + generator.poisson(rate) - served, 0)
        return np.asarray(lengths[1:].T)

    def effect(self, runs: int, generator: np.random.Generator) -> float:
        """Mean length with always treating less that with never treating, from so many runs of each."""
        lengths = self.run(np.repeat([0, 1], runs)[:, None].repeat(self.steps, axis=1), generator)
        return float(lengths[runs:].mean() - lengths[:runs].mean())


def switchback(
    runs: int, steps: int, block: int, p: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Arms with one coin for each block of steps, shape (runs, T)."""
    coins = (generator.random((runs, -(-steps // block))) < p).astype(np.int64)
    return np.repeat(coins, block, axis=1)[:, :steps]


def block_means(values: Array, block: int) -> Array:
    """Means over whole blocks, shape (..., T // block)."""
    whole = values.shape[-1] // block * block
    return np.asarray(values[..., :whole].reshape(*values.shape[:-1], -1, block).mean(-1))
