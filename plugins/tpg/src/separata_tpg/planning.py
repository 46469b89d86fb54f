"""Before launch: which effect an experiment of a given length can detect at each k."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import attrs
import pandas as pd

from . import exact
from .errors import InvalidSetting
from .estimator import TPGEstimator
from .exact import MDP


def minimum_detectable_effect(std_error: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """The effect that a two-sided test finds with the given power: ``(z_level + z_power)`` standard errors."""
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * std_error


def plan(
    source: MDP | TPGEstimator,
    steps: Iterable[int],
    k: Iterable[int] = (0, 1, 2, 3, 5),
    *,
    p: float = 0.5,
    level: float = 0.95,
    power: float = 0.8,
) -> pd.DataFrame:
    """Standard error and minimum detectable effect for each length and k.

    Args:
        source: A finite MDP, whose exact variances are taken, or an estimator fitted on a pilot with its path, whose
            standard errors are scaled by the square root of the steps.
        steps: Lengths of the experiment, in steps or blocks.
        k: Values of k; those of the pilot's path if a pilot is given.
        p: Chance of arm 1.
        level: Level of the interval.
        power: Chance to detect.

    Returns:
        One row for each length and k; for an MDP with the estimator's mean and its bias against the effect.

    Raises:
        InvalidSetting: If a length makes no experiment, or the MDP's chances change and end before it does.
    """
    lengths = [int(step) for step in steps]
    if not lengths or min(lengths) < 2:
        raise InvalidSetting(f"steps are {lengths}", "give lengths of at least 2")
    rows: list[dict[str, Any]] = []
    if isinstance(source, MDP):
        ks = list(k)
        for length in lengths:
            process = _cut(source, length)
            effect = exact.gate(process)
            for one in ks:
                mean = exact.mean(process, one, p)
                error = math.sqrt(exact.variance(process, one, p))
                rows.append(
                    {"steps": length, "k": one, "std_error": error, "mean": mean, "bias": mean - effect}
                )
    else:
        for length in lengths:
            scale = math.sqrt(source.n_steps_ / length)
            rows += [
                {"steps": length, "k": int(row.k), "std_error": row.std_error * scale}
                for row in source.path_.itertuples()
            ]
    table = pd.DataFrame(rows)
    found = [minimum_detectable_effect(error, level=level, power=power) for error in table["std_error"]]
    return table.assign(detectable=found)


def _cut(process: MDP, length: int) -> MDP:
    # Broadcast arrays have no stride in time: chances that never change reach as far as one likes.
    if process.transitions.strides[0] == 0 and process.rewards.strides[0] == 0:
        return attrs.evolve(
            process, transitions=process.transitions[0], rewards=process.rewards[0], horizon=length
        )
    if length > process.horizon:
        raise InvalidSetting(f"steps is {length}, the process ends at {process.horizon}", "give fewer steps")
    return attrs.evolve(
        process,
        transitions=process.transitions[:length],
        rewards=process.rewards[:length],
        horizon=length,
    )
