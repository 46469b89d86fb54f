"""Where samples come from: pairs drawn alike, all pairs in turn, one long trajectory, or an environment's own steps."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidProcess, InvalidSetting
from .processes import MDP, Array, uniform_policy

Integers = NDArray[np.int64]
Sampling: TypeAlias = Literal["uniform", "generative", "behaviour"]
SAMPLINGS = ("uniform", "generative", "behaviour")


class Samples(NamedTuple):
    """Transitions in the order in which they were seen, each of shape (K,).

    ``pairs`` number state and action as ``state * A + action``; ``ended`` says that nothing follows the next state.
    """

    pairs: Integers
    rewards: Array
    next_states: Integers
    ended: NDArray[np.bool_]


class Source(Protocol):
    """Whatever gives samples."""

    states: int
    actions: int

    def draw(self, count: int) -> Samples:
        """The next samples."""


class _Outcomes:
    """What can follow each pair, without chances of zero: drawing is a search in one long sorted array."""

    def __init__(self, mdp: MDP) -> None:
        chances = mdp.transitions.reshape(-1, mdp.states)
        self.pairs, self.targets = np.nonzero(chances)
        self.last = np.searchsorted(self.pairs, np.arange(len(chances)), "right") - 1
        masses = np.cumsum(chances[self.pairs, self.targets])
        before = masses[self.last[:-1]]
        # Pair number plus the chance of its outcomes up to this one.
        self.upto = masses - np.concatenate([[0.0], before])[self.pairs] + self.pairs
        self.rewards = mdp.rewards.reshape(chances.shape)[self.pairs, self.targets]
        self.ends = mdp.ends.reshape(chances.shape)[self.pairs, self.targets]
        self.noise = mdp.noise

    def draw(self, pairs: Integers, generator: np.random.Generator) -> Samples:
        places = np.searchsorted(self.upto, pairs + generator.random(len(pairs)), "right")
        places = np.minimum(places, self.last[pairs])
        return self.samples(pairs, places, generator)

    def samples(self, pairs: Integers, places: Integers, generator: np.random.Generator) -> Samples:
        rewards = self.rewards[places]
        if self.noise:
            rewards = rewards + self.noise * generator.standard_normal(len(pairs))
        return Samples(pairs, rewards, self.targets[places], self.ends[places])


class Independent:
    """Pairs by themselves: each drawn with the same chance, or all in turn.

    Args:
        mdp: The process.
        generator: Source of randomness.
        in_turn: Whether pairs come one after the other, as from a generative model.
    """

    def __init__(self, mdp: MDP, generator: np.random.Generator, *, in_turn: bool = False) -> None:
        self.states, self.actions = mdp.states, mdp.actions
        self._outcomes, self._generator = _Outcomes(mdp), generator
        self._in_turn, self._next = in_turn, 0

    def draw(self, count: int) -> Samples:
        """The next samples."""
        total = self.states * self.actions
        if self._in_turn:
            pairs = (self._next + np.arange(count)) % total
            self._next = (self._next + count) % total
        else:
            pairs = self._generator.integers(total, size=count)
        return self._outcomes.draw(pairs, self._generator)


class Trajectory:
    """One trajectory of a fixed policy through a known process, episode after episode.

    Args:
        mdp: The process.
        policy: Chance of each action, shape (S, A).
        generator: Source of randomness.

    Raises:
        InvalidSetting: If the policy is none.
    """

    def __init__(self, mdp: MDP, policy: Array, generator: np.random.Generator) -> None:
        if (
            policy.shape != (mdp.states, mdp.actions)
            or not np.allclose(policy.sum(1), 1)
            or (policy < 0).any()
        ):
            raise InvalidSetting(
                f"the policy has shape {policy.shape}",
                f"give {(mdp.states, mdp.actions)}, rows >= 0 that sum to 1",
            )
        self.states, self.actions = mdp.states, mdp.actions
        self._outcomes, self._generator = _Outcomes(mdp), generator
        # Lists: one number at a time is looked up faster in them than in arrays.
        self._upto, self._last = self._outcomes.upto.tolist(), self._outcomes.last.tolist()
        self._targets, self._ends = self._outcomes.targets.tolist(), self._outcomes.ends.tolist()
        self._actions = [row.tolist() for row in np.cumsum(policy, 1)]
        self._starts = np.cumsum(mdp.initial).tolist()
        self._state: int | None = None

    def draw(self, count: int) -> Samples:
        """The next samples."""
        drawn = self._generator.random((3, count)).tolist()
        upto, last, targets, ends = self._upto, self._last, self._targets, self._ends
        pairs, places = [], []
        state = self._state
        for first, second, third in zip(*drawn, strict=True):
            if state is None:
                state = min(bisect_right(self._starts, third), self.states - 1)
            action = min(bisect_right(self._actions[state], first), self.actions - 1)
            pair = state * self.actions + action
            place = min(bisect_right(upto, pair + second), last[pair])
            pairs.append(pair)
            places.append(place)
            state = None if ends[place] else targets[place]
        self._state = state
        return self._outcomes.samples(np.array(pairs), np.array(places), self._generator)


class Environment:
    """Steps of a gymnasium environment with discrete states and actions, all actions alike.

    Args:
        env: The environment; its spaces are ``Discrete`` and start at 0.
        generator: Source of randomness; it seeds the first reset.

    Raises:
        InvalidProcess: If a space is not discrete.
    """

    def __init__(self, env: Any, generator: np.random.Generator) -> None:
        sizes = [getattr(space, "n", None) for space in (env.observation_space, env.action_space)]
        if None in sizes:
            raise InvalidProcess(
                f"spaces are {env.observation_space} and {env.action_space}", "a table needs Discrete spaces"
            )
        self.states, self.actions = (int(size) for size in sizes if size is not None)
        self._env, self._generator = env, generator
        self._state = int(env.reset(seed=int(generator.integers(2**31)))[0])

    def draw(self, count: int) -> Samples:
        """The next samples."""
        pairs, targets = np.empty((2, count), np.int64)
        rewards, ended = np.empty(count), np.empty(count, bool)
        for place, action in enumerate(self._generator.integers(self.actions, size=count)):
            pairs[place] = self._state * self.actions + action
            state, rewards[place], ended[place], truncated, _ = self._env.step(int(action))
            targets[place] = self._state = int(state)
            if ended[place] or truncated:
                self._state = int(self._env.reset()[0])
        return Samples(pairs, rewards, targets, ended)


def make_source(
    process: MDP | Any, sampling: Sampling, policy: Array | None, generator: np.random.Generator
) -> Source:
    """The source that settings name.

    Raises:
        InvalidSetting: If they name none.
        InvalidProcess: If an environment without a table is to give anything but its own steps.
    """
    if sampling not in SAMPLINGS:
        raise InvalidSetting(f"sampling is {sampling!r}", f"give one of {', '.join(SAMPLINGS)}")
    if isinstance(process, MDP):
        if sampling == "behaviour":
            chosen = uniform_policy(process) if policy is None else np.asarray(policy, np.float64)
            return Trajectory(process, chosen, generator)
        return Independent(process, generator, in_turn=sampling == "generative")
    if sampling != "behaviour":
        raise InvalidProcess(
            f"{process} has no table to draw {sampling} samples from",
            "take sampling=behaviour: its own steps",
        )
    return Environment(process, generator)
