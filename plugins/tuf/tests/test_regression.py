"""Many steps at once are the same steps one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from separata_tuf import MDP
from separata_tuf import regression as module
from separata_tuf.benchmarks import Replayed, one_by_one
from separata_tuf.errors import InvalidSetting
from separata_tuf.regression import Regression, check_step_size
from separata_tuf.sampling import Independent, Samples


def loop(samples: Samples, start: np.ndarray, target: np.ndarray, step: Any) -> np.ndarray:
    values, best = start.reshape(-1).copy(), target.max(1)
    visits = np.zeros(values.size)
    for k, (pair, reward, following, ended) in enumerate(zip(*samples, strict=True), 1):
        goal = reward + 0.9 * (0 if ended else best[following])
        visits[pair] += 1
        eta = (
            1 / visits[pair]
            if step == "mean"
            else min(1, step[1] / (k + step[2]))
            if isinstance(step, tuple)
            else step
        )
        values[pair] += eta * (goal - values[pair])
    return values.reshape(target.shape)


@pytest.mark.parametrize("step", ["mean", 0.1, 1.0, ("harmonic", 20.0, 30.0), ("harmonic", 50.0, 0.0)])
def test_steps_at_once_are_steps_one_by_one(process: MDP, step: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 700)
    samples = Independent(process, np.random.default_rng(0)).draw(2000)
    start = np.random.default_rng(1).normal(size=(6, 2))
    run = Regression(Replayed(process, samples), start.copy(), 0.9, step)
    run.draw(2000)
    # The order of additions differs.
    np.testing.assert_allclose(run.values, loop(samples, start, start, step), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(run.visits, np.bincount(samples.pairs, minlength=12))


def test_the_benchmarks_loop_learns_the_same(process: MDP) -> None:
    samples = Independent(process, np.random.default_rng(0)).draw(2000)
    target = np.ones((6, 2))
    run = Regression(Replayed(process, samples), target.copy(), 0.9, "mean")
    run.draw(2000)
    np.testing.assert_allclose(run.values, one_by_one(samples, target, 0.9), rtol=1e-11)


def test_periods_of_one_update_are_ordinary_q_learning_bit_for_bit(process: MDP) -> None:
    samples = Independent(process, np.random.default_rng(0)).draw(500)
    run = Regression(Replayed(process, samples), np.zeros((6, 2)), 0.9, 0.25)
    values = np.zeros(12)
    for pair, reward, following, _ in zip(*samples, strict=True):
        values[pair] += 0.25 * (reward + 0.9 * values.reshape(6, 2)[following].max() - values[pair])
        run.draw(1)
        assert run.refresh() == 1
    assert (run.values.reshape(-1) == values).all()


def test_visits_begin_anew_in_each_period(process: MDP) -> None:
    samples = Independent(process, np.random.default_rng(0)).draw(600)
    run = Regression(Replayed(process, samples), np.zeros((6, 2)), 0.9, "mean")
    run.draw(300)
    run.refresh()
    target = run.target.copy()
    run.draw(300)
    second = Samples(*(field[300:] for field in samples))
    np.testing.assert_allclose(run.values, loop(second, target, target, "mean"), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("step", ["max", 0, 1.5, True, ("harmonic", 0, 1), ("harmonic", 1), None])
def test_step_sizes_out_of_range_are_refused(step: Any) -> None:
    with pytest.raises(InvalidSetting, match="step_size is"):
        check_step_size(step)
