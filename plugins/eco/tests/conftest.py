"""Shared by the tests: a small problem whose gradients depend on the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from separata_eco import QuantizedParameter, quantizer


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def weight() -> Callable[..., QuantizedParameter]:
    """A quantised weight of 6 x 256 normal numbers."""

    def make(
        name: str = "fp8_e4m3", dtype: torch.dtype = torch.float32, seed: int = 0, **options: Any
    ) -> Any:
        drawn = torch.randn(6, 256, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return QuantizedParameter.from_dense(drawn.to(dtype), quantizer(name, **options))

    return make


@pytest.fixture
def descend() -> Callable[..., Tensor]:
    """Take steps on a noisy quadratic around 1 and return the weight as numbers."""

    def run(
        optimizer: Any, parameter: Any, steps: int, rates: Callable[[int], float] | None = None, seed: int = 1
    ) -> Tensor:
        draws = torch.Generator().manual_seed(seed)
        for step in range(steps):
            dense = (
                parameter.dequantize() if isinstance(parameter, QuantizedParameter) else parameter.detach()
            )
            noise = torch.randn(dense.shape, generator=draws, dtype=torch.float64)
            parameter.grad = (0.5 * (dense - 1) + 0.3 * noise).to(dense.dtype)
            if rates is not None:
                optimizer.param_groups[0]["lr"] = rates(step)
            optimizer.step()
        return parameter.dequantize() if isinstance(parameter, QuantizedParameter) else parameter.detach()

    return run
