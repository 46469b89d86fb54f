"""Small inputs on which the conformance kit tries what MoDEX offers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from separata import Placement
from separata.testing import EstimatorExample, KernelExample, TrainerExample

from .classifier import MoDEXClassifier
from .head import MoDEXNetwork, modexify
from .loss import modex_loss
from .tuning import MoDEXTrainer, TuneConfig

STEPS = 12


def efd_moments() -> KernelExample:
    """Five rows of four classes; and no row."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        drawn = torch.rand(3, 5, 4, generator=generator, dtype=torch.float64)
        return (
            (4 * drawn[0] + 0.1).to(dtype),
            (4 * drawn[1] + 0.1).to(dtype),
            (drawn[2] / drawn[2].sum(-1, keepdim=True)).to(dtype),
        )

    def empty(dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(torch.ones(0, 4, dtype=dtype) for _ in range(3))

    return KernelExample(inputs=inputs, empty=empty, differentiable=True)


def classifier() -> EstimatorExample:
    """Three clouds of points; labels and rows that make no sense."""

    def data(generator: torch.Generator) -> tuple[Any, ...]:
        truth = np.repeat([0, 1, 2], 20)
        return torch.randn(60, 3, generator=generator).numpy() + 2 * np.eye(3)[truth], truth

    rows = np.eye(4)
    bad = (
        (rows, np.zeros(4)),
        (np.where(rows > 0, np.nan, 0), np.array([0, 1, 0, 1])),
        (rows, np.array([[0, 1], [1, 1], [1, 0], [1, 1]])),
        (rows, np.array([0, 1])),
    )
    return EstimatorExample(make=lambda: MoDEXClassifier((8,), epochs=3, random_state=0), data=data, bad=bad)


def trainer() -> TrainerExample:
    """A perceptron with dropout on three clouds of points, in float64."""
    truth = torch.arange(60) % 3
    points = torch.randn(60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points[:, :3] += 2 * torch.nn.functional.one_hot(truth, 3)

    def network() -> MoDEXNetwork:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return modexify(
                torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
            ).double()

    def fit(folder: Path, steps: int, batch_size: int, resume: bool) -> dict[str, torch.Tensor]:
        config = TuneConfig(
            steps=STEPS,
            batch=batch_size,
            head_rate=0.01,
            backbone_rate=0.01,
            warm_up=0.0,
            validation=0.0,
            checkpoint_every=1,
        )
        made = network()
        MoDEXTrainer(config, out=folder).fit(
            made,
            torch.utils.data.TensorDataset(points, truth),
            placement=Placement(strategy="ddp") if "RANK" in os.environ else None,
            resume=folder if resume else None,
            until=steps,
        )
        return made.state_dict()

    @torch.no_grad()
    def loss(parameters: dict[str, torch.Tensor]) -> float:
        made = network()
        made.load_state_dict(parameters)
        return float(modex_loss(made(points).law, truth))

    return TrainerExample(fit=fit, loss=loss, steps=STEPS)
