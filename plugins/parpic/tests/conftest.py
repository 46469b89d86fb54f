"""Small directed graphs that the tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from separata_parpic import Digraph, generators

CHAIN_OF_300 = ((0.05, 0.3, 0.0), (0.01, 0.05, 0.3), (0.0, 0.01, 0.05))


@pytest.fixture(params=["dense", "sparse"])
def layout(request: pytest.FixtureRequest) -> Callable[[Tensor], Tensor]:
    """Takes a dense matrix to the layout on trial."""
    return (lambda matrix: matrix) if request.param == "dense" else Tensor.to_sparse_csr


@pytest.fixture
def weights() -> Tensor:
    """Random weights on 20 vertices, a third of the edges, one dangling vertex, float64."""
    drawn = torch.rand(20, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kept = torch.where(drawn < 1 / 3, drawn, 0.0)
    kept[4] = 0
    return kept


@pytest.fixture(scope="session")
def chain() -> tuple[Digraph, Any]:
    """Three blocks of 300 vertices in a row."""
    return generators.block_model((300, 300, 300), CHAIN_OF_300, np.random.default_rng(0))
