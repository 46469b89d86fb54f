"""Stochastic block models of directed graphs, with the paper's three."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidSetting
from .graphs import Digraph

BASELINE = ((0.05, 0.01, 0.01), (0.01, 0.05, 0.01), (0.01, 0.01, 0.05))
CHAIN = ((0.05, 0.6, 0.0), (0.01, 0.05, 0.6), (0.0, 0.01, 0.05))
CORE_PERIPHERY = ((0.05, 0.6, 0.6), (0.02, 0.05, 0.02), (0.02, 0.02, 0.05))


def block_model(
    sizes: Sequence[int], probabilities: ArrayLike, generator: np.random.Generator
) -> tuple[Digraph, NDArray[np.int64]]:
    """Draw a directed graph without self-loops whose edges depend on the blocks of their ends alone.

    Args:
        sizes: Vertices of each block.
        probabilities: Probability of an edge from row block to column block, shape (blocks, blocks).
        generator: Draws the edges; the cost is in proportion to their number.

    Returns:
        The graph, and the block of each vertex, int64, shape (n,).

    Raises:
        InvalidSetting: If the probabilities are no square matrix of probabilities for these blocks.
    """
    chances = np.asarray(probabilities, np.float64)
    if chances.shape != (len(sizes), len(sizes)) or not ((chances >= 0) & (chances <= 1)).all():
        raise InvalidSetting(
            f"probabilities have shape {chances.shape} for {len(sizes)} blocks",
            "give one between 0 and 1 for each pair of blocks",
        )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns = [], []
    for source, target in np.ndindex(chances.shape):
        cells = sizes[source] * sizes[target]
        count = generator.binomial(cells, chances[source, target])
        chosen = generator.choice(cells, count, replace=False, shuffle=False)
        rows.append(starts[source] + chosen // sizes[target])
        columns.append(starts[target] + chosen % sizes[target])
    row, column = np.concatenate(rows), np.concatenate(columns)
    apart = row != column
    edges = sp.coo_array((np.ones(apart.sum()), (row[apart], column[apart])), shape=(starts[-1], starts[-1]))
    return Digraph.of(edges), np.repeat(np.arange(len(sizes)), sizes)
