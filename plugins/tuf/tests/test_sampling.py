"""Samples follow the process they come from."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from separata_tuf import MDP, coverage
from separata_tuf.errors import InvalidProcess, InvalidSetting
from separata_tuf.sampling import Samples, make_source

N = 60_000


def drawn(process: Any, sampling: Any, policy: Any = None) -> Samples:
    return make_source(process, sampling, policy, np.random.default_rng(5)).draw(N)


@pytest.mark.parametrize("sampling", ["uniform", "generative", "behaviour"])
def test_next_states_and_rewards_have_their_laws(process: MDP, sampling: str) -> None:
    samples = drawn(process, sampling)
    for pair in range(12):
        own = samples.pairs == pair
        shares = np.bincount(samples.next_states[own], minlength=6) / own.sum()
        # Five standard errors of a share and of a mean with standard deviation 1.
        assert abs(shares - process.transitions.reshape(12, 6)[pair]).max() < 2.5 / np.sqrt(own.sum())
        assert abs(samples.rewards[own].mean() - process.mean_rewards.flat[pair]) < 5 / np.sqrt(own.sum())
        assert samples.rewards[own].std() == pytest.approx(1, abs=0.1)


def test_a_chance_of_zero_never_happens() -> None:
    mdp = MDP.from_env(gymnasium.make("FrozenLake-v1"))
    samples = drawn(mdp, "uniform")
    state, action = np.divmod(samples.pairs, 4)
    assert (mdp.transitions[state, action, samples.next_states] > 0).all()
    np.testing.assert_array_equal(samples.ended, mdp.ends[state, action, samples.next_states])


def test_a_trajectory_goes_on_where_it_was_and_starts_anew() -> None:
    mdp = MDP.from_env(gymnasium.make("FrozenLake-v1"))
    source = make_source(mdp, "behaviour", None, np.random.default_rng(5))
    parts = [source.draw(count) for count in (1, 5000, 5000)]
    states = np.concatenate([part.pairs for part in parts]) // 4
    following = np.concatenate([part.next_states for part in parts])
    ended = np.concatenate([part.ended for part in parts])
    np.testing.assert_array_equal(states[1:], np.where(ended, 0, following)[:-1])


def test_a_policy_decides_what_is_visited(process: MDP) -> None:
    policy = np.tile([0.9, 0.1], (6, 1))
    shares = np.bincount(drawn(process, "behaviour", policy).pairs, minlength=12) / N
    np.testing.assert_allclose(shares, coverage(process, policy).reshape(-1), atol=0.02)


def test_an_environment_steps_like_its_table() -> None:
    env = gymnasium.make("FrozenLake-v1").unwrapped
    table = MDP.from_env(env)
    del env.P
    stepped = make_source(SimpleEnv(env, table), "behaviour", None, np.random.default_rng(1)).draw(20_000)
    shares = np.bincount(stepped.pairs, minlength=64) / 20_000
    np.testing.assert_allclose(shares, coverage(table).reshape(-1), atol=0.015)


class SimpleEnv:
    """FrozenLake again, from its arrays: an environment that keeps no table."""

    def __init__(self, env: Any, table: MDP) -> None:
        self.observation_space, self.action_space, self._table = (
            env.observation_space,
            env.action_space,
            table,
        )
        self.unwrapped = self

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._state = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        place = self._state, action
        self._state = int(self._random.choice(16, p=self._table.transitions[place]))
        reward, ended = self._table.rewards[*place, self._state], self._table.ends[*place, self._state]
        return self._state, float(reward), bool(ended), False, {}


def test_wrong_sources_are_refused(process: MDP) -> None:
    with pytest.raises(InvalidSetting, match="sampling is 'all'"):
        drawn(process, "all")
    with pytest.raises(InvalidSetting, match="policy has shape"):
        drawn(process, "behaviour", np.ones((2, 2)))
    with pytest.raises(InvalidProcess, match="Discrete spaces"):
        drawn(gymnasium.make("CartPole-v1"), "behaviour")
    with pytest.raises(InvalidProcess, match="no table"):
        drawn(gymnasium.make("CartPole-v1"), "uniform")
