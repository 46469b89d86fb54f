"""Periodic Q-learning against exact value iteration, bounds, and what it is given."""

from __future__ import annotations

from typing import Any

import attrs
import gymnasium
import numpy as np
import pytest

from separata_tuf import MDP, Constant, PeriodicQ, Triggered, optimal_values
from separata_tuf.errors import InvalidProcess, InvalidSetting


def deterministic() -> MDP:
    random = np.random.default_rng(2)
    transitions = np.eye(5)[random.integers(5, size=(5, 3))]
    return MDP(transitions, random.random((5, 3)))


def test_without_noise_each_period_is_a_step_of_value_iteration() -> None:
    mdp = deterministic()
    found = PeriodicQ(0.8, 300, [15] * 20, sampling="generative").fit(mdp)
    values = np.zeros((5, 3))
    for _ in range(20):
        values = mdp.bellman(values, 0.8)
    np.testing.assert_allclose(found.Q_, values, atol=1e-14)
    first = found.error_trace_[0]
    assert (found.error_trace_ <= 0.8 ** np.arange(21) * first + 1e-12).all()
    assert (found.policy_ == values.argmax(1)).all()


def test_growing_periods_end_nearer_than_equal_ones(process: MDP) -> None:
    errors = {
        name: np.mean(
            [
                PeriodicQ(0.9, 300_000, name, periods=80, random_state=seed).fit(process).error_trace_[-1]
                for seed in range(8)
            ]
        )
        for name in ("geometric", "constant")
    }
    assert errors["geometric"] < 0.8 * errors["constant"]


@pytest.mark.parametrize(
    "schedule", ["geometric", "constant", "anytime", "triggered", Constant(400), [500, 700]]
)
def test_every_schedule_spends_the_budget(process: MDP, schedule: Any) -> None:
    made = PeriodicQ(0.9, 5000, schedule, first=200, periods=8)
    found = made.fit(process)
    assert sum(found.periods_) == 5000
    assert len(found.error_trace_) == len(found.periods_) + 1
    again = made.fit(process)
    assert again.periods_ == found.periods_


def test_triggered_periods_end_when_the_exact_differences_are_small() -> None:
    # Every look sees all pairs: the differences are 0 at once, and each period is as short as can be.
    found = PeriodicQ(0.8, 150, Triggered(shortest=15), sampling="generative").fit(deterministic())
    assert found.periods_ == [15] * 10


def test_an_environment_with_a_table_is_read(process: MDP) -> None:
    found = PeriodicQ(0.95, 20_000, periods=30).fit(gymnasium.make("FrozenLake-v1"))
    assert found.error_trace_[-1] < found.error_trace_[0]
    assert not len(found.unseen_)


def test_an_environment_without_one_is_stepped() -> None:
    env = gymnasium.make("Blackjack-v1")
    env = gymnasium.wrappers.TransformObservation(
        env, lambda seen: seen[0] * 22 + seen[1] * 2 + seen[2], gymnasium.spaces.Discrete(32 * 11 * 2)
    )
    found = PeriodicQ(0.99, 3000, "triggered", sampling="behaviour", first=500).fit(env)
    assert found.error_trace_ is None
    assert found.Q_.shape == (704, 2)
    # At 20 a player sticks.
    assert found.Q_[20 * 22 + 10 * 2, 0] > found.Q_[20 * 22 + 10 * 2, 1]


def test_what_is_never_seen_is_named_and_stays() -> None:
    mdp = MDP.from_env(gymnasium.make("CliffWalking-v1"))
    found = PeriodicQ(0.9, 5000, periods=5, sampling="behaviour", initial=np.full((48, 4), -3.0)).fit(mdp)
    assert [37, 0] in found.unseen_.tolist()
    assert found.Q_[37, 0] == -3


def test_the_start_may_be_the_optimum(process: MDP) -> None:
    quiet = attrs.evolve(process, noise=0.0)
    found = PeriodicQ(0.9, 100, "constant", periods=1, initial=optimal_values(quiet, 0.9)).fit(quiet)
    assert found.error_trace_[0] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1"),
        ({"budget": 0}, "budget is 0"),
        ({"schedule": "slow"}, "schedule is 'slow'"),
        ({"schedule": []}, "lengths are"),
        ({"periods": 10**6}, "a budget of 100000"),
        ({"sampling": "all"}, "sampling is"),
        ({"initial": np.zeros(3)}, "initial has shape"),
        ({"step_size": 2.0}, "step_size is"),
    ],
)
def test_settings_out_of_range_are_refused(process: MDP, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        PeriodicQ(**given).fit(process)


def test_what_is_no_process_is_refused() -> None:
    with pytest.raises(InvalidProcess, match="ndarray was given"):
        PeriodicQ().fit(np.zeros((2, 2)))
