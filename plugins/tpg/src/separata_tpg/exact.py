"""Exact effect, mean and variance of the estimator on finite Markov decision processes, also in changing ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from .errors import InvalidProcess, InvalidSetting

Array = NDArray[np.float64]
LARGEST_K = 14


def _array(value: Any) -> Array:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProcess(f"{error}", "give arrays of numbers of one shape") from None


@attrs.frozen(eq=False)
class MDP:
    """A finite system under two arms.

    Args:
        transitions: Chances of the next state, shape (T, 2, S, S), or (2, S, S) if they never change.
        rewards: Mean outcome of an arm in a state, shape (T, 2, S) or (2, S).
        horizon: Steps T; taken from the arrays if they change.
        initial: Law of the first state, shape (S,); uniform if not given.
        noise: Standard deviation of outcomes around their means.

    Raises:
        InvalidProcess: If shapes don't fit or a row is no distribution.
    """

    transitions: Array = attrs.field(converter=_array)
    rewards: Array = attrs.field(converter=_array)
    horizon: int = 0
    initial: Array = attrs.field(default=(), converter=_array)
    noise: float = 0.0

    def __attrs_post_init__(self) -> None:
        states = self.transitions.shape[-1]
        steps = {
            array.shape[0]
            for array, still in ((self.transitions, 3), (self.rewards, 2))
            if array.ndim > still
        }
        horizon = steps.pop() if steps else self.horizon
        fits = (
            self.transitions.shape[-3:] == (2, states, states)
            and self.transitions.ndim in (3, 4)
            and self.rewards.shape[-2:] == (2, states)
            and self.rewards.ndim in (2, 3)
            and horizon > 0
            and not steps
            and self.horizon in (0, horizon)
        )
        if not fits:
            raise InvalidProcess(
                f"transitions {self.transitions.shape}, rewards {self.rewards.shape}, horizon {self.horizon}",
                "give (T, 2, S, S) and (T, 2, S), or without T and with a horizon",
            )
        initial = self.initial if self.initial.size else np.full(states, 1 / states)
        rows = [self.transitions, initial]
        if initial.shape != (states,) or any(
            (row < 0).any() or abs(row.sum(-1) - 1).max() > 1e-8 for row in rows
        ):
            raise InvalidProcess(
                "a row of transitions or initial is no distribution", "rows are >= 0 and sum to 1"
            )
        object.__setattr__(
            self, "transitions", np.broadcast_to(self.transitions, (horizon, 2, states, states))
        )
        object.__setattr__(self, "rewards", np.broadcast_to(self.rewards, (horizon, 2, states)))
        object.__setattr__(self, "horizon", horizon)
        object.__setattr__(self, "initial", initial)

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read JSON with ``transitions``, ``rewards``, ``horizon`` and, if wanted, ``initial`` and ``noise``."""
        try:
            return cls(**json.loads(Path(path).read_text()))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
            raise InvalidProcess(
                f"{path}: {error}", "give JSON with transitions, rewards and horizon"
            ) from error

    def mixed(self, p: float) -> tuple[Array, Array]:
        """Transitions (T, S, S) and rewards (T, S) if each step treats with chance p."""
        return _mix(self.transitions, p), _mix(self.rewards, p)


def value(mdp: MDP, p: float) -> float:
    """Mean outcome per step if each step treats with chance p: V(p)."""
    kernels, rewards = mdp.mixed(p)
    law, total = mdp.initial, 0.0
    for kernel, reward in zip(kernels, rewards, strict=True):
        total += float(law @ reward)
        law = law @ kernel
    return total / mdp.horizon


def gate(mdp: MDP) -> float:
    """Global average treatment effect: V(1) - V(0)."""
    return value(mdp, 1.0) - value(mdp, 0.0)


def mean(mdp: MDP, k: int, p: float = 0.5) -> float:
    """Expectation of the estimator with k: exact for any horizon; k >= T - 1 gives V'(p).

    A decision's effect on the state law, ``d_t (P_t^1 - P_t^0)``, is carried k steps by the mixed kernels.
    """
    kernels, rewards = mdp.mixed(p)
    law, total = mdp.initial, 0.0
    # All carried effects in one row if none is ever dropped, else one row for each age.
    carried = np.zeros((k if 0 < k < mdp.horizon - 1 else 1, len(mdp.initial)))
    for t in range(mdp.horizon):
        total += float(law @ (mdp.rewards[t, 1] - mdp.rewards[t, 0]) + (carried @ rewards[t]).sum())
        effect = law @ (mdp.transitions[t, 1] - mdp.transitions[t, 0])
        carried = carried @ kernels[t]
        if k >= mdp.horizon - 1:
            carried[0] += effect
        elif k:
            carried = np.concatenate([effect[None], carried[:-1]])
        law = law @ kernels[t]
    return total / mdp.horizon


def variance(mdp: MDP, k: int, p: float = 0.5) -> float:
    """Variance of the estimator with k, form ``ht``, edge ``pad``.

    ``T tau`` is the sum of ``y_t W_t`` with ``W_t`` the weights of the last k + 1 decisions. Mass, first and second
    moment of the sum so far are carried over all pairs of state and last k decisions: ``S 2^k`` cells.

    Raises:
        InvalidSetting: If k is above 14.
    """
    if k > LARGEST_K:
        raise InvalidSetting(f"k is {k}", f"exact variances take k up to {LARGEST_K}; simulate beyond")
    histories = np.arange(2**k)
    weight = (-1 / (1 - p), 1 / p)
    state = np.zeros((3, len(mdp.initial), 2**k))
    state[0, :, 0] = mdp.initial
    for t in range(mdp.horizon):
        past = sum(
            (np.where(histories >> j & 1, weight[1], weight[0]) for j in range(min(k, t))), np.zeros(2**k)
        )
        after = np.zeros((3, len(mdp.initial), 2 ** max(k - 1, 0), 2 if k else 1))
        for arm, chance in enumerate((1 - p, p)):
            moved = _step(state, mdp.rewards[t, arm][:, None], past + weight[arm], mdp.noise**2)
            moved = chance * np.einsum("msh,sn->mnh", moved, mdp.transitions[t, arm])
            if k:
                after[..., arm] = moved.reshape(3, -1, 2, 2 ** (k - 1)).sum(2)
            else:
                after[..., 0] += moved
        state = after.reshape(state.shape)
    first, second = state[1].sum(), state[2].sum()
    return float((second - first**2) / mdp.horizon**2)


def _step(state: Array, reward: Array, weights: Array, noise: float) -> Array:
    """Mass and moments of the sum after adding ``y W``."""
    mass, first, second = state
    added = reward * weights
    return np.stack(
        [mass, first + mass * added, second + 2 * first * added + mass * (reward**2 + noise) * weights**2]
    )


def _mix(arrays: Array, p: float) -> Array:
    return np.asarray((1 - p) * arrays[:, 0] + p * arrays[:, 1])
