"""Deep Q-learning with stable-baselines3 under a schedule: settings that learn classic control in minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separata.errors import PackageMissing

from .dqn import target_update_callback
from .errors import InvalidSetting
from .schedules import Constant, Geometric, Schedule, Triggered


def make_schedule(name: str, first: int, gamma: float) -> Schedule:
    """A schedule by name, which starts with periods of ``first`` updates.

    Raises:
        InvalidSetting: If there is none of that name.
    """
    made: dict[str, Callable[[], Schedule]] = {
        "geometric": lambda: Geometric(gamma, first),
        "constant": lambda: Constant(first),
        "triggered": lambda: Triggered(shortest=first, longest=10 * first, decay=0.9),
    }
    if name not in made:
        raise InvalidSetting(f"schedule is {name!r}", f"give one of {', '.join(made)}")
    return made[name]()


def train(
    env: str, schedule: Schedule, steps: int, *, gamma: float = 0.99, seed: int = 0, device: str = "cpu"
) -> tuple[Any, Any]:
    """Train a DQN; the agent and the callback that held its schedule.

    Args:
        env: Gymnasium id.
        schedule: Counts gradient updates.
        steps: Environment steps; every fourth one has an update on 64 transitions.
        gamma: Discount.
        seed: Seed of the environment, the network and exploration.
        device: Where the network is.

    Raises:
        PackageMissing: If stable-baselines3 is not installed.
        InvalidSetting: If the environment is unknown or its actions are not discrete.
    """
    try:
        from stable_baselines3 import DQN
    except ImportError as error:
        raise PackageMissing.extra("stable-baselines3", "separata-tuf[dqn]") from error
    import gymnasium

    try:
        made = gymnasium.make(env)
    except gymnasium.error.Error as error:
        raise InvalidSetting(str(error), "name an environment of gymnasium, such as CartPole-v1") from error
    if not isinstance(made.action_space, gymnasium.spaces.Discrete):
        raise InvalidSetting(f"{env} has actions {made.action_space}", "DQN needs Discrete actions")
    agent = DQN(
        "MlpPolicy",
        made,
        learning_rate=1e-3,
        batch_size=64,
        learning_starts=1000,
        train_freq=4,
        exploration_fraction=0.2,
        exploration_final_eps=0.04,
        gamma=gamma,
        seed=seed,
        device=device,
    )
    callback = target_update_callback(schedule)
    agent.learn(steps, callback=callback)
    return agent, callback


def judge(agent: Any, env: str, episodes: int, seed: int = 0) -> tuple[float, float]:
    """Mean return of the greedy policy and its standard error, over new episodes."""
    import gymnasium
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    made = Monitor(gymnasium.make(env))
    made.reset(seed=10_000 + seed)
    returns: Any
    returns, _ = evaluate_policy(agent, made, episodes, return_episode_rewards=True)
    spread = np.std(returns, ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else np.nan
    return float(np.mean(returns)), float(spread)
