"""Speed against eigenvectors of the same graph, over growing block models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from separata.claims import Race, Trial

from .clustering import ParPIC
from .embedding import embed
from .generators import block_model
from .graphs import Digraph
from .measures import vertex_measure
from .operators import reversible_operator
from .peers import leading_eigenvectors, symmetric_form, symmetrised_spectral

BLOCKS = 10


def cyclic_blocks(size: int, seed: int) -> Digraph:
    """Ten blocks: about eight edges a vertex inside its block, two to the next one, two anywhere."""
    chances = np.full((BLOCKS, BLOCKS), 2 / size)
    chances += 8 * BLOCKS / size * np.eye(BLOCKS) + 2 * BLOCKS / size * np.roll(np.eye(BLOCKS), 1, axis=1)
    graph, _ = block_model((size // BLOCKS,) * BLOCKS, chances, np.random.default_rng(seed))
    return graph


def embedding(trial: Trial) -> Iterator[Race]:
    """Yield one race for each number of vertices."""
    for size in (1000, 5000, 20_000):
        adjacency = cyclic_blocks(size, trial.seed).tensor()
        operator, stationary = reversible_operator(adjacency, vertex_measure(adjacency))
        symmetric = symmetric_form(operator, stationary)

        def ours(operator: torch.Tensor = operator, stationary: torch.Tensor = stationary) -> object:
            return embed(operator, stationary, trial.generator())

        yield Race(size, ours, lambda symmetric=symmetric: leading_eigenvectors(symmetric, BLOCKS))  # type: ignore[misc]


def clustering(trial: Trial) -> Iterator[Race]:
    """Yield one race for each number of vertices."""
    for size in (1000, 2000, 4000):
        graph = cyclic_blocks(size, trial.seed)
        model = ParPIC(BLOCKS, random_state=trial.seed)
        yield Race(
            size,
            lambda model=model, graph=graph: model.fit(graph),  # type: ignore[misc]
            lambda graph=graph: symmetrised_spectral(graph, BLOCKS, trial.seed),  # type: ignore[misc]
        )
