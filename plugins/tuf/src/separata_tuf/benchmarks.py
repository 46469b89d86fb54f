"""Speed of a period's regression against a loop over its samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from separata.claims import Race, Trial

from .processes import MDP, Array, optimal_values
from .regression import Regression
from .sampling import Independent, Samples

GAMMA = 0.9


def random_process(seed: int, states: int = 6, actions: int = 2, noise: float = 1.0) -> MDP:
    """A process with transitions from a Dirichlet law of 1/2, mean rewards in [0, 1] and noisy rewards."""
    random = np.random.default_rng(seed)
    transitions = random.dirichlet(np.full(states, 0.5), (states, actions))
    return MDP(transitions, random.random((states, actions)), noise=noise)


class Replayed:
    """Samples that were drawn before, again and again from the first."""

    def __init__(self, mdp: MDP, samples: Samples) -> None:
        self.states, self.actions = mdp.states, mdp.actions
        self._samples, self._next = samples, 0

    def draw(self, count: int) -> Samples:
        """The next samples."""
        part = slice(self._next, self._next + count)
        self._next += count
        pairs, rewards, next_states, ended = self._samples
        return Samples(pairs[part], rewards[part], next_states[part], ended[part])


def one_by_one(samples: Samples, target: Array, gamma: float) -> Array:
    """A period of Q-learning with steps of one over the visits, sample after sample, on Python's own lists."""
    pairs, rewards, next_states, ended = (field.tolist() for field in samples)
    best = target.max(1).tolist()
    values, visits = target.reshape(-1).tolist(), [0] * target.size
    for pair, reward, following, over in zip(pairs, rewards, next_states, ended, strict=True):
        goal = reward if over else reward + gamma * best[following]
        visits[pair] += 1
        values[pair] += (goal - values[pair]) / visits[pair]
    return np.array(values).reshape(target.shape)


def at_once(mdp: MDP, samples: Samples, target: Array, gamma: float) -> Array:
    """The same period by our regression."""
    run = Regression(Replayed(mdp, samples), target.copy(), gamma, "mean")
    run.draw(len(samples.pairs))
    return run.values


def draw_and_learn(mdp: MDP, count: int, seed: int) -> Array:
    """Draw a period's samples and learn from them."""
    run = Regression(
        Independent(mdp, np.random.default_rng(seed)), np.zeros((mdp.states, mdp.actions)), GAMMA, "mean"
    )
    run.draw(count)
    return run.values


def draw_and_loop(mdp: MDP, count: int, seed: int) -> Array:
    """The same by drawing and learning one sample after the other, as textbooks write it."""
    random = np.random.default_rng(seed)
    cumulated = np.cumsum(mdp.transitions, -1)
    rewards, values = mdp.mean_rewards, np.zeros((mdp.states, mdp.actions))
    target, visits = values.copy(), np.zeros(values.shape)
    for _ in range(count):
        state, action = random.integers(mdp.states), random.integers(mdp.actions)
        following = np.searchsorted(cumulated[state, action], random.random())
        goal = rewards[state, action] + mdp.noise * random.standard_normal() + GAMMA * target[following].max()
        visits[state, action] += 1
        values[state, action] += (goal - values[state, action]) / visits[state, action]
    return values


def regression(trial: Trial) -> Iterator[Race]:
    """Yield one race for each length of a period, over the same samples."""
    mdp = random_process(trial.seed)
    target = optimal_values(mdp, GAMMA)
    for size in (10_000, 100_000, 1_000_000):
        samples = Independent(mdp, np.random.default_rng(trial.seed)).draw(size)
        yield Race(
            size, partial(at_once, mdp, samples, target, GAMMA), partial(one_by_one, samples, target, GAMMA)
        )


def whole(trial: Trial) -> Iterator[Race]:
    """Yield one race for each length of a period, its samples drawn inside."""
    mdp = random_process(trial.seed)
    for size in (10_000, 100_000):
        yield Race(
            size,
            partial(draw_and_learn, mdp, size, trial.seed),
            partial(draw_and_loop, mdp, size, trial.seed),
        )
