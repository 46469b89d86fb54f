"""How good a partition of a directed graph is without knowing the truth, and how its parts are linked."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .graphs import Digraph


def directed_modularity(graph: Any, labels: ArrayLike) -> float:
    """Modularity of a partition: the share of weight inside parts, less what the degrees alone would put there.

    ``sum_c (w_cc / m - out_c in_c / m^2)`` (Leicht and Newman, PRL 100, 118703, 2008); below 1, and 0 for one part.

    Args:
        graph: A graph as ``Digraph.of`` takes it.
        labels: Part of each vertex, shape (n,).
    """
    flow, _ = block_flow(graph, labels)
    total = flow.sum()
    return float(np.trace(flow) / total - flow.sum(1) @ flow.sum(0) / total**2)


def block_flow(graph: Any, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Total weight from part to part.

    Args:
        graph: A graph as ``Digraph.of`` takes it.
        labels: Part of each vertex, shape (n,).

    Returns:
        Weights from row to column, shape (parts, parts), and the label of each row.
    """
    adjacency = Digraph.of(graph).adjacency
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    belongs = sp.csr_array(
        (np.ones(len(codes)), (np.arange(len(codes)), codes)), shape=(len(codes), len(names))
    )
    return (belongs.T @ adjacency @ belongs).toarray(), names
