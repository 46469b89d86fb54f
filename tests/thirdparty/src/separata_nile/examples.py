"""Small inputs on which `separata check nile` tries each offer."""

from __future__ import annotations

import torch
from torch import Tensor

from separata import Estimate, testing


def kernel() -> testing.KernelExample:
    """Numbers on both sides of the threshold."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Tensor, float]:
        return torch.randn(4, 5, generator=generator, dtype=torch.float64).to(dtype), 0.5

    return testing.KernelExample(
        inputs=inputs, empty=lambda dtype: (torch.empty(0, dtype=dtype), 0.5), differentiable=True
    )


def model() -> testing.ModelExample:
    """A small model and three rows for it."""
    from .config import NileConfig

    return testing.ModelExample(
        config=NileConfig(), inputs=lambda generator: (torch.randn(3, 3, generator=generator),)
    )


def trainer() -> testing.TrainerExample:
    """A linear relation without noise, so that the loss can fall to nothing."""
    from .trainer import RegressionTrainer

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def loss(parameters: dict[str, Tensor]) -> float:
        return float(((x @ parameters["weight"] - y) ** 2).mean())

    return testing.TrainerExample(fit=RegressionTrainer(x, y).train, loss=loss)


def estimator() -> testing.EstimatorExample:
    """Normal samples with a known mean."""
    from .estimator import MeanEstimator

    def inference(generator: torch.Generator) -> tuple[Estimate, float]:
        sample = torch.randn(100, generator=generator, dtype=torch.float64) + 2.0
        return MeanEstimator().fit(sample).estimate_, 2.0

    def data(generator: torch.Generator) -> tuple[Tensor]:
        return (torch.randn(20, generator=generator),)

    return testing.EstimatorExample(
        make=MeanEstimator, data=data, bad=[(torch.tensor([1.0, float("nan")]),)], inference=inference
    )


def scheduler() -> testing.SchedulerExample:
    """A short run of numbers."""
    from .scheduler import AverageScheduler

    return testing.SchedulerExample(
        make=AverageScheduler,
        observations=lambda generator: torch.randn(8, generator=generator).tolist(),
        bad=[float("nan")],
    )
