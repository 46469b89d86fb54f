"""Processes from arrays, files and gymnasium, their optimum and who is visited."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import gymnasium
import numpy as np
import pytest
from scipy.optimize import linprog

from separata_tuf import MDP, coverage, optimal_values
from separata_tuf.errors import InvalidProcess, InvalidSetting


def toy(name: str) -> MDP:
    return MDP.from_env(gymnasium.make(name))


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_the_optimum_is_a_fixed_point(name: str) -> None:
    mdp = toy(name)
    values = optimal_values(mdp, 0.95)
    assert abs(mdp.bellman(values, 0.95) - values).max() < 1e-10


def test_the_optimum_is_that_of_value_iteration_and_of_a_linear_program(process: MDP) -> None:
    values = optimal_values(process, 0.9)
    iterated = np.zeros_like(values)
    for _ in range(400):
        iterated = process.bellman(iterated, 0.9)
    np.testing.assert_allclose(values, iterated, atol=1e-12)
    # min sum V such that V >= R + gamma P V for each pair.
    constraints = 0.9 * process.transitions.reshape(-1, 6) - np.repeat(np.eye(6), 2, 0)
    solved = linprog(np.ones(6), constraints, -process.mean_rewards.reshape(-1), bounds=(None, None))
    np.testing.assert_allclose(values.max(1), solved.x, atol=1e-7)


def test_an_episode_that_ends_is_worth_its_last_reward() -> None:
    mdp = MDP([[[0, 1.0]], [[0, 1.0]]], [[5.0], [7.0]], ends=[[[False, True]], [[False, False]]])
    np.testing.assert_allclose(optimal_values(mdp, 0.5), [[5], [14]])


def test_a_reward_may_depend_on_the_next_state() -> None:
    mdp = MDP([[[0.25, 0.75]], [[0, 1.0]]], [[[4.0, 8.0]], [[0, 0]]])
    assert mdp.mean_rewards[0, 0] == 7


def test_coverage_is_the_share_of_steps() -> None:
    # From 0 to 1, where the episode ends: half the steps each.
    mdp = MDP([[[0, 1.0]], [[1.0, 0]]], [[0.0], [1.0]], ends=[[[False] * 2], [[True, False]]], initial=[1, 0])
    np.testing.assert_allclose(coverage(mdp), [[0.5], [0.5]], atol=1e-6)
    lake = coverage(toy("FrozenLake-v1"))
    assert lake.sum() == pytest.approx(1)
    assert (lake[[5, 7, 11, 12, 15]] == 0).all()


def test_what_is_left_for_good_has_no_share() -> None:
    mdp = MDP([[[0, 1.0]], [[0, 1.0]]], [[0.0], [1.0]], initial=[1, 0])
    np.testing.assert_allclose(coverage(mdp), [[0], [1]], atol=1e-6)


def test_arrays_come_back_from_a_file(process: MDP, tmp_path: Path) -> None:
    np.savez(tmp_path / "mdp.npz", P=process.transitions, R=process.rewards, noise=1.0)
    assert MDP.read(tmp_path / "mdp.npz") == process
    np.savez(tmp_path / "other.npz", P=process.transitions)
    with pytest.raises(InvalidProcess, match="it lacks R"):
        MDP.read(tmp_path / "other.npz")
    with pytest.raises(InvalidProcess, match=r"nowhere\.npz"):
        MDP.read(tmp_path / "nowhere.npz")


def test_a_row_that_is_no_distribution_is_named() -> None:
    transitions = np.full((2, 2, 2), 0.5)
    transitions[1, 0] = [0.5, 0.4]
    with pytest.raises(InvalidProcess, match=r"state 1, action 0 sum to 0\.9"):
        MDP(transitions, np.zeros((2, 2)))


@pytest.mark.parametrize(
    "given",
    [
        {"transitions": np.zeros((2, 2))},
        {"rewards": np.zeros(3)},
        {"rewards": np.full((2, 1), np.nan)},
        {"rewards": [["a"], ["b"]]},
        {"ends": np.zeros((1, 1, 2), bool)},
        {"initial": [0.5, 0.6]},
        {"initial": [1.0]},
        {"noise": -1.0},
    ],
)
def test_arrays_that_make_no_process_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidProcess):
        MDP(**{"transitions": np.full((2, 1, 2), 0.5), "rewards": np.zeros((2, 1)), **given})


def test_environments_without_a_usable_table_are_refused() -> None:
    with pytest.raises(InvalidProcess, match="has no table P"):
        MDP.from_env(gymnasium.make("CartPole-v1"))
    both = {0: {0: [(0.5, 0, 0, False), (0.5, 0, 1, True)]}}
    with pytest.raises(InvalidProcess, match="both ends and goes on"):
        MDP.from_env(SimpleNamespace(unwrapped=SimpleNamespace(P=both)))


def test_no_discount_is_refused(process: MDP) -> None:
    with pytest.raises(InvalidSetting, match="gamma is 1"):
        optimal_values(process, 1)


def test_a_changed_process_is_another(process: MDP) -> None:
    assert attrs.evolve(process, noise=2.0) != process
