"""Small inputs on which the conformance kit tries what the plugin offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from separata.testing import KernelExample, SchedulerExample

from .config import OEAConfig
from .scheduler import BatchScheduler, StepScores


def route() -> KernelExample:
    """Six tokens, ten experts; some scores equal."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        steps = torch.randint(1, 12, (6, 10), generator=generator)
        return (steps / 12).to(dtype), 4, 2

    def empty(dtype: torch.dtype) -> tuple[Any, ...]:
        return torch.zeros(0, 10, dtype=dtype), 4, 2

    return KernelExample(inputs=inputs, empty=empty, dtypes=("float32", "float64", "bfloat16"))


def batch() -> SchedulerExample:
    """Twelve steps of eight rows with a target in seconds, so that choices depend on what was seen."""

    def observations(generator: torch.Generator) -> Sequence[StepScores]:
        return [
            StepScores(
                torch.rand(8, 16, generator=generator).softmax(-1),
                active=torch.rand(8, generator=generator) < 0.8,
                seconds=float(torch.rand((), generator=generator)) + 1 if step else None,
            )
            for step in range(24)
        ]

    def make() -> BatchScheduler:
        return BatchScheduler(4, OEAConfig(k0=4, target_seconds=1.5))

    scores = torch.full((8, 16), 0.1)
    bad = [
        StepScores(torch.full((8, 16), float("nan"))),
        StepScores(scores[0]),
        StepScores(scores, active=torch.ones(3, dtype=torch.bool)),
        StepScores(scores, mixing=scores[:, :4]),
        StepScores(scores, seconds=-1.0),
    ]
    return SchedulerExample(make=make, observations=observations, bad=bad)
