"""Small inputs on which the conformance kit tries what MixFP4 offers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from separata.testing import EstimatorExample, KernelExample

from .report import CrestFactorReport


def kernel() -> KernelExample:
    """Flat blocks, Gaussian blocks, heavy tails and a block of zeros."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        x = torch.randn(6, 3, 48, generator=generator, dtype=torch.float64)
        x[1] = x[1].sign() * (1 + 0.1 * x[1])
        x[2] = x[2] ** 3
        x[3, 0] = 0
        return (x.to(dtype),)

    return KernelExample(
        inputs=inputs,
        dtypes=("float32", "float64", "bfloat16", "float16"),
        empty=lambda dtype: (torch.zeros(0, 32, dtype=dtype),),
    )


def crest_factor_report() -> EstimatorExample:
    """Two tensors of different tails."""

    def data(generator: torch.Generator) -> tuple[dict[str, Tensor]]:
        gaussian = torch.randn(32, 64, generator=generator)
        return ({"gaussian": gaussian, "cubed": gaussian**3},)

    return EstimatorExample(
        make=CrestFactorReport,
        data=data,
        bad=(({},), ({"x": torch.full((2, 16), torch.nan)},), ({"x": torch.zeros(2, 15)},)),
    )
