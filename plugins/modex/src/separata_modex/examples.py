"""Small inputs on which the conformance kit tries what MoDEX offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from separata.testing import EstimatorExample, KernelExample

from .classifier import MoDEXClassifier


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
