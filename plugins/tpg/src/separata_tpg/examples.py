"""Small inputs on which the conformance kit tries what the plugin offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from separata.estimates import Estimate
from separata.testing import EstimatorExample, KernelExample

from .estimator import TPGEstimator
from .exact import MDP, mean
from .simulators import run

STEPS = 400
_CHANCES = np.array([[0.75, 0.25], [0.65, 0.35]]), np.array([[0.25, 0.75], [0.15, 0.85]])
PROCESS = MDP(np.stack(_CHANCES, axis=1), np.array([[0.0, 5.0], [1.0, 6.0]]), STEPS, noise=0.1)


def _log(generator: torch.Generator) -> pd.DataFrame:
    random = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
    arms = random.integers(0, 2, (1, STEPS))
    return pd.DataFrame({"arm": arms[0], "outcome": run(PROCESS, arms, random)[0]})


def estimator() -> EstimatorExample:
    """400 steps of two states; logs that make no experiment."""

    def inference(generator: torch.Generator) -> tuple[Estimate, float]:
        fitted = TPGEstimator(1, baseline="past").fit(_log(generator))
        return fitted.estimate_, mean(PROCESS, 1)

    good = _log(torch.Generator().manual_seed(0))
    bad = (
        good.drop(columns="arm"),
        good.assign(arm=1),
        good.assign(arm=good["arm"] + 1),
        good.assign(outcome=np.nan),
        good.iloc[:3],
        pd.DataFrame({"arm": np.arange(400) // 20 % 2, "outcome": 0.0}),
    )
    return EstimatorExample(
        make=lambda: TPGEstimator([0, 1, 3]),
        # A record array: the kit compares what it holds, which it can not for a table.
        data=lambda generator: (_log(generator).to_records(index=False),),
        bad=tuple((table,) for table in bad),
        inference=inference,
    )


def contributions() -> KernelExample:
    """Three runs of twenty steps; and none."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        outcomes = torch.randn(3, 20, generator=generator, dtype=torch.float64).to(dtype)
        arms = torch.randint(0, 2, (3, 20), generator=generator)
        return outcomes, arms, torch.full((3, 1), 0.4, dtype=dtype), 4

    def empty(dtype: torch.dtype) -> tuple[Any, ...]:
        return torch.zeros(0, 5, dtype=dtype), torch.zeros(0, 5), torch.tensor(0.5, dtype=dtype), 2

    return KernelExample(inputs=inputs, empty=empty, differentiable=True)
