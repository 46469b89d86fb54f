"""Schedules in torch loops and in stable-baselines3."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import pytest
import torch

from separata.errors import PackageMissing
from separata_tuf import Constant, Geometric, Triggered, maybe_update, target_update_callback
from separata_tuf.errors import InvalidSetting, TUFNotice


def test_a_target_gets_parameters_and_buffers_when_it_is_time() -> None:
    online, target = (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)) for _ in range(2))
    online(torch.randn(8, 2))
    schedule = Constant(2)
    assert not maybe_update(schedule, online, target)
    assert not torch.equal(target[0].weight, online[0].weight)
    assert maybe_update(schedule, online, target)
    for mine, theirs in zip(target.state_dict().values(), online.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


def agent(**settings: Any) -> Any:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    chosen = {"learning_starts": 50, "train_freq": 4, "seed": 0, "device": "cpu", **settings}
    return stable_baselines3.DQN("MlpPolicy", gymnasium.make("CartPole-v1"), **chosen)


def refreshes(learner: Any, callback: Any, steps: int) -> list[int]:
    """Environment steps at which the target changed, seen from outside."""
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.callbacks import BaseCallback

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            now = next(learner.q_net_target.parameters()).detach().clone()
            if hasattr(self, "before") and not torch.equal(now, self.before):
                # The callback runs before this step's own refresh.
                times.append(self.num_timesteps - 1)
            self.before = now
            return True

    times: list[int] = []
    learner.learn(steps, callback=[callback, Watch()])
    return times


def test_the_librarys_own_refresh_fires_when_the_schedule_says_so() -> None:
    learner = agent(target_update_interval=77)
    callback = target_update_callback(Geometric(0.5, 10, longest=1000), unit="updates")
    times = refreshes(learner, callback, 500)
    assert callback.refreshed[:3] == [10, 26, 51]
    # An update comes after each fourth step, from step 52 on; it is seen at the step after it.
    assert times == [48 + 4 * updates + 1 for updates in callback.refreshed][: len(times)]
    assert (learner.target_update_interval, learner.tau) == (77, 1)


def test_periods_may_count_environment_steps() -> None:
    learner = agent()
    callback = target_update_callback(Constant(120), unit="steps")
    assert refreshes(learner, callback, 500) == [120, 240, 360, 480][: len(callback.refreshed)]


def test_a_share_of_a_refresh_is_told_and_comes_back() -> None:
    learner = agent(tau=0.5)
    with pytest.warns(TUFNotice, match=r"tau is 0\.5"):
        learner.learn(60, callback=target_update_callback(Constant(5)))
    assert learner.tau == 0.5


def test_triggered_looks_at_the_replay_buffer() -> None:
    learner = agent()
    callback = target_update_callback(Triggered(scale=1e6, shortest=20, decay=0.5))
    learner.learn(600, callback=callback)
    # 256 transitions are there after 256 steps, 52 updates.
    assert callback.refreshed[0] >= 51
    assert (
        min(later - sooner for sooner, later in zip(callback.refreshed, callback.refreshed[1:], strict=False))
        >= 20
    )


def test_wrong_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    with pytest.raises(InvalidSetting, match="unit is 'episodes'"):
        target_update_callback(Constant(5), unit="episodes")  # type: ignore[arg-type]
    other = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, device="cpu")
    with pytest.raises(InvalidSetting, match="PPO was given"):
        other.learn(64, callback=target_update_callback(Constant(5)))
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.callbacks", None)
    with pytest.raises(PackageMissing, match=r"separata-tuf\[dqn\]"):
        target_update_callback(Constant(5))
