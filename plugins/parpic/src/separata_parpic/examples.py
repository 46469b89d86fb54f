"""Small inputs on which the conformance kit tries what ParPIC offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from separata.testing import EstimatorExample, KernelExample

from .clustering import ParPIC
from .generators import CHAIN, block_model
from .operators import random_walk


def _weights(generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    drawn = torch.rand(12, 12, generator=generator, dtype=torch.float64)
    # A third of the edges, and a cycle so that every vertex has a way out.
    kept = torch.where(drawn < 1 / 3, drawn, 0.0) + torch.roll(torch.eye(12), 1, 1)
    return kept.to(dtype)


def reversible_operator() -> KernelExample:
    """A weighted graph on twelve vertices with a random measure."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        return _weights(generator, dtype), torch.rand(12, generator=generator, dtype=torch.float64).to(dtype)

    return KernelExample(inputs=inputs, differentiable=True)


def vertex_measure() -> KernelExample:
    """A weighted graph on twelve vertices."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        return (_weights(generator, dtype),)

    return KernelExample(inputs=inputs, differentiable=True)


def diffuse() -> KernelExample:
    """Three signals, four steps; and no signal at all."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        walk = random_walk(_weights(generator, torch.float64)).to(dtype)
        return walk, torch.rand(12, 3, generator=generator, dtype=torch.float64).to(dtype), 4

    def empty(dtype: torch.dtype) -> tuple[Any, ...]:
        return torch.eye(3, dtype=dtype), torch.zeros(3, 0, dtype=dtype), 2

    return KernelExample(inputs=inputs, empty=empty, differentiable=True)


def clustering() -> EstimatorExample:
    """A small chain of blocks; matrices that are no graph."""

    def data(generator: torch.Generator) -> tuple[Any, ...]:
        seed = int(torch.randint(2**31, (1,), generator=generator))
        graph, _ = block_model((30, 30, 30), CHAIN, np.random.default_rng(seed))
        return (graph.adjacency.toarray(),)

    ring = np.roll(np.eye(4), 1, axis=1)
    bad = (ring[:3], -ring, np.zeros((4, 4)), np.where(ring > 0, np.nan, 0), ring[:2, :2])
    return EstimatorExample(
        make=lambda: ParPIC(3, random_state=0), data=data, bad=tuple((matrix,) for matrix in bad)
    )
