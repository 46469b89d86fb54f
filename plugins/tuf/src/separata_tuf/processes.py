"""Finite Markov decision processes: from arrays, files and gymnasium, their optimal values and who is visited."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .errors import InvalidProcess
from .periods import check_discount

Array = NDArray[np.float64]
_equal = attrs.cmp_using(eq=np.array_equal)


def _array(value: Any) -> Array:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProcess(f"{error}", "give arrays of numbers of one shape") from None


def _flags(value: Any) -> NDArray[np.bool_]:
    return np.asarray(value, bool)


@attrs.frozen
class MDP:
    """A finite process.

    Args:
        transitions: Chance of the next state, shape (S, A, S); each row sums to 1.
        rewards: Mean reward, shape (S, A), or (S, A, S) if it depends on the next state.
        ends: Whether that transition ends the episode, bool of shape (S, A, S); none if not given.
        initial: Law of an episode's first state, shape (S,); uniform if not given.
        noise: Standard deviation of rewards around their means.

    Raises:
        InvalidProcess: If shapes don't fit, a row is no distribution or a number is not finite.
    """

    transitions: Array = attrs.field(converter=_array, eq=_equal)
    rewards: Array = attrs.field(converter=_array, eq=_equal)
    ends: NDArray[np.bool_] = attrs.field(default=(), converter=_flags, eq=_equal)
    initial: Array = attrs.field(default=(), converter=_array, eq=_equal)
    noise: float = attrs.field(default=0.0, converter=float)

    def __attrs_post_init__(self) -> None:
        shape = self.transitions.shape
        if len(shape) != 3 or shape[0] != shape[2] or self.rewards.shape not in (shape, shape[:2]):
            raise InvalidProcess(
                f"transitions have shape {shape}, rewards {self.rewards.shape}",
                "give (S, A, S), and (S, A) or (S, A, S)",
            )
        states = shape[0]
        rewards = self.rewards if self.rewards.ndim == 3 else self.rewards[:, :, None]
        ends = self.ends if self.ends.size else np.zeros(shape, bool)
        initial = self.initial if self.initial.size else np.full(states, 1 / states)
        if ends.shape != shape or initial.shape != (states,):
            raise InvalidProcess(
                f"ends have shape {ends.shape}, initial {initial.shape}", f"give {shape} and ({states},)"
            )
        self._check_numbers(initial)
        object.__setattr__(self, "rewards", np.broadcast_to(rewards, shape))
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "initial", initial)

    def _check_numbers(self, initial: Array) -> None:
        if not np.isfinite(self.rewards).all() or not 0 <= self.noise < np.inf:
            raise InvalidProcess(
                "a reward or the noise is not finite, or the noise negative", "give finite numbers"
            )
        sums = self.transitions.sum(-1)
        wrong = np.argwhere(~np.isclose(sums, 1, atol=1e-8) | (self.transitions < 0).any(-1))
        if wrong.size:
            state, action = map(int, wrong[0])
            raise InvalidProcess(
                f"the transitions of state {state}, action {action} sum to {sums[state, action]:.6g}",
                "each row is >= 0 and sums to 1",
            )
        if (initial < 0).any() or not np.isclose(initial.sum(), 1, atol=1e-8):
            raise InvalidProcess(f"initial sums to {initial.sum():.6g}", "it is >= 0 and sums to 1")

    @property
    def states(self) -> int:
        """S."""
        return int(self.transitions.shape[0])

    @property
    def actions(self) -> int:
        """A."""
        return int(self.transitions.shape[1])

    @property
    def mean_rewards(self) -> Array:
        """Mean reward of each pair, shape (S, A)."""
        return np.asarray(np.einsum("sat,sat->sa", self.transitions, self.rewards))

    @property
    def continuing(self) -> Array:
        """Chance of each next state with an episode that goes on, shape (S, A, S)."""
        return np.where(self.ends, 0.0, self.transitions)

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read ``.npz`` with ``P`` (S, A, S), ``R`` and, if wanted, ``ends``, ``initial`` and ``noise``."""
        try:
            with np.load(path, allow_pickle=False) as file:
                found = dict(file)
        except (OSError, ValueError, BadZipFile) as error:
            raise InvalidProcess(f"{path}: {error}", "give an .npz file with P and R") from error
        missing = [name for name in ("P", "R") if name not in found]
        if missing:
            raise InvalidProcess(
                f"{path} holds {', '.join(found) or 'nothing'}", f"it lacks {', '.join(missing)}"
            )
        optional = {name: found[name] for name in ("ends", "initial", "noise") if name in found}
        return cls(found["P"], found["R"], **optional)

    @classmethod
    def from_env(cls, env: Any) -> Self:
        """The process behind a gymnasium environment of the toy text kind, which keeps it as ``env.unwrapped.P``.

        Raises:
            InvalidProcess: If the environment has no such table, or one this class can't hold.
        """
        inner = env.unwrapped
        table = getattr(inner, "P", None)
        if table is None:
            raise InvalidProcess(
                f"{env} has no table P", "name FrozenLake-v1, CliffWalking-v1, Taxi-v4 or another with one"
            )
        states, actions = len(table), len(table[0])
        transitions, rewards = np.zeros((2, states, actions, states))
        ends = np.zeros((states, actions, states), bool)
        for state, action in np.ndindex(states, actions):
            for chance, target, reward, ended in table[state][action]:
                place = (state, action, target)
                if transitions[place] and bool(ends[place]) != bool(ended):
                    raise InvalidProcess(f"transition {place} both ends and goes on", "split the next state")
                transitions[place] += chance
                rewards[place] += chance * reward
                ends[place] = ended
        # Several entries for one next state: the mean of their rewards.
        rewards = np.divide(rewards, transitions, out=np.zeros_like(rewards), where=transitions > 0)
        initial = getattr(inner, "initial_state_distrib", ())
        return cls(transitions, rewards, ends, initial)

    def bellman(self, values: ArrayLike, gamma: float) -> Array:
        """The Bellman operator on action values: ``R + gamma P max Q``, both of shape (S, A)."""
        best = np.asarray(values, np.float64).max(1)
        return np.asarray(self.mean_rewards + gamma * self.continuing @ best)


def optimal_values(mdp: MDP, gamma: float) -> Array:
    """Q*, shape (S, A), by policy iteration with exact solves; its Bellman residual is that of the solver.

    Raises:
        InvalidSetting: If the discount does not lie in [0, 1).
    """
    check_discount(gamma)
    states = np.arange(mdp.states)
    rewards, continuing = mdp.mean_rewards, mdp.continuing
    policy = np.zeros(mdp.states, np.int64)
    while True:
        system = np.eye(mdp.states) - gamma * continuing[states, policy]
        values = rewards + gamma * continuing @ np.linalg.solve(system, rewards[states, policy])
        better = values.max(1) > values[states, policy] + 1e-12 * (1 + abs(values).max())
        if not better.any():
            return np.asarray(values)
        policy = np.where(better, values.argmax(1), policy)


def coverage(mdp: MDP, policy: ArrayLike | None = None) -> Array:
    """Share of steps that each pair gets in the long run when episodes follow each other.

    Args:
        mdp: The process; an episode that ends is followed by one that starts from ``initial``.
        policy: Chance of each action, shape (S, A); all alike if not given.

    Returns:
        Shape (S, A), with 1 as its sum and 0 where the process never comes.
    """
    chances = uniform_policy(mdp) if policy is None else _array(policy)
    restart = np.where(mdp.ends, mdp.transitions, 0.0).sum(-1)
    steps = np.einsum("sa,sat->st", chances, mdp.continuing)
    steps += np.outer((chances * restart).sum(1), mdp.initial)
    reached = reachable(steps, mdp.initial)
    # The law from `initial`: that of the chain restarted with a vanishing chance, exact to 1e-9.
    system = np.eye(len(reached)) - (1 - 1e-9) * steps[np.ix_(reached, reached)].T
    law = np.zeros(mdp.states)
    law[reached] = np.linalg.solve(system, 1e-9 * mdp.initial[reached])
    # What is left early and never seen again keeps a share of the restart's size: none in the long run.
    law = np.where(law > 1e-8, law, 0) / law.sum()
    return np.asarray(law[:, None] * chances)


def reachable(steps: Array, initial: Array) -> NDArray[np.int64]:
    """States that a chain visits from its first states."""
    graph = sparse.csr_matrix(steps > 0)
    found = initial > 0
    while True:
        more = found | (graph.T @ found.astype(np.float64) > 0)
        if (more == found).all():
            return np.flatnonzero(found)
        found = more


def uniform_policy(mdp: MDP) -> Array:
    """All actions alike, shape (S, A)."""
    return np.full((mdp.states, mdp.actions), 1 / mdp.actions)
