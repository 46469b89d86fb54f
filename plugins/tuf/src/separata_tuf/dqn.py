"""Schedules in deep Q-learning: a hard refresh for any torch loop, and a callback for stable-baselines3's DQN."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from separata.errors import PackageMissing

from .errors import InvalidSetting, TUFNotice
from .schedules import FOREVER, Schedule, Triggered

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback
    from torch import Tensor, nn

TD_BATCH = 256


def maybe_update(
    schedule: Schedule, online: nn.Module, target: nn.Module, observation: Mapping[str, Any] | None = None
) -> bool:
    """Tell a schedule of one more update, and copy the online network into the target when it says so.

    Args:
        schedule: Any schedule.
        online: Network that learns.
        target: Network of the same architecture; its parameters and buffers are overwritten.
        observation: What ``Schedule.step`` takes; one more update if not given.

    Returns:
        Whether the target was refreshed.

    Example: in a loop, after ``optimizer.step()``: ``maybe_update(schedule, online, target)``.
    """
    refresh = schedule.step(observation)
    if refresh:
        target.load_state_dict(online.state_dict())
    return refresh


def target_update_callback(
    schedule: Schedule, *, unit: Literal["updates", "steps"] = "updates"
) -> BaseCallback:
    """A callback that gives stable-baselines3's DQN a schedule: the library's own refresh fires when it says so.

    While training runs, the model's ``target_update_interval`` is written at each step, and ``tau`` is 1; both come
    back afterwards. A schedule that looks at temporal differences gets those of 256 transitions from the replay buffer.
    Save ``schedule.state_dict()`` beside the model to resume in the middle of a period.

    Args:
        schedule: Any schedule.
        unit: What its periods count: gradient updates, or environment steps as ``target_update_interval`` does.

    Raises:
        PackageMissing: If stable-baselines3 is not installed.
        InvalidSetting: If the unit is unknown or, when training starts, the model is no DQN.
    """
    if unit not in ("updates", "steps"):
        raise InvalidSetting(f"unit is {unit!r}", "give updates or steps")
    try:
        from stable_baselines3.common.callbacks import BaseCallback
    except ImportError as error:
        raise PackageMissing.extra("stable-baselines3", "separata-tuf[dqn]") from error

    class TargetUpdateCallback(BaseCallback):
        """Refreshes the target when its schedule says so.

        Attributes:
            schedule: The schedule.
            refreshed: Counts, in the schedule's unit, at which the target was refreshed.
        """

        model: Any

        def __init__(self) -> None:
            super().__init__()
            self.schedule = schedule
            self.refreshed: list[int] = []

        def _on_training_start(self) -> None:
            if not hasattr(self.model, "q_net_target"):
                raise InvalidSetting(
                    f"{type(self.model).__name__} was given", "give a DQN of stable-baselines3"
                )
            self._kept = self.model.target_update_interval, self.model.tau
            if self.model.tau != 1:
                warnings.warn(
                    f"tau is {self.model.tau}: a refresh would move the target by that share; it is 1 in this training",
                    TUFNotice,
                    stacklevel=2,
                )
            self.model.tau = 1.0

        def _on_step(self) -> bool:
            # Called just before the model's own check, `calls % interval == 0`: an interval of 1 makes it fire.
            count = self.model._n_updates if unit == "updates" else self.num_timesteps
            refresh = count > 0 and self._decide(count)
            if refresh:
                self.refreshed.append(count)
            self.model.target_update_interval = 1 if refresh else FOREVER
            return True

        def _decide(self, count: int) -> bool:
            if not isinstance(schedule, Triggered):
                return schedule.step({"step": count})
            buffer = self.model.replay_buffer
            if count < schedule.next_update or buffer.size() < TD_BATCH:
                return False
            return schedule.step({"step": count, "td": _differences(self.model)})

        def _on_training_end(self) -> None:
            self.model.target_update_interval, self.model.tau = self._kept

    return TargetUpdateCallback()


def _differences(model: Any) -> Tensor:
    """Temporal differences of a minibatch of a DQN's replay buffer, shape (TD_BATCH,)."""
    import torch

    batch = model.replay_buffer.sample(TD_BATCH, env=model._vec_normalize_env)
    with torch.no_grad():
        follow = model.q_net_target(batch.next_observations).max(1).values
        goal = batch.rewards.flatten() + (1 - batch.dones.flatten()) * model.gamma * follow
        found: Tensor = goal - model.q_net(batch.observations).gather(1, batch.actions.long()).flatten()
    return found
