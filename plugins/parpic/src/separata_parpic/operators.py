"""Random walks on a directed graph, and the family of reversible operators between them and their symmetrisation."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from .errors import InvalidGraph, ZeroMeasure

DENSE_ENTRIES = 10**7


def csr(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> Tensor:
    """A sparse CSR matrix of shape (size, size); weights of one edge given twice are summed."""
    summed = torch.sparse_coo_tensor(
        torch.stack([rows, columns]), weights, (size, size), check_invariants=False
    ).coalesce()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return summed.to_sparse_csr()


def edges(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and weights of a sparse CSR matrix."""
    counts = matrix.crow_indices().diff()
    rows = torch.repeat_interleave(torch.arange(len(matrix), device=matrix.device), counts)
    return rows, matrix.col_indices().long(), matrix.values()


def out_in_degrees(adjacency: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted out- and in-degrees, each of shape (n,), of a dense or sparse matrix of shape (n, n)."""
    if adjacency.layout == torch.strided:
        return adjacency.sum(1), adjacency.sum(0)
    rows, columns, weights = edges(adjacency)
    nothing = torch.zeros(len(adjacency), dtype=weights.dtype, device=weights.device)
    return nothing.index_add(0, rows, weights), nothing.index_add(0, columns, weights)


def random_walk(adjacency: Tensor, dangling: str = "self-loop") -> Tensor:
    """The walk ``P = D_out^-1 A``; its rows sum to 1.

    Args:
        adjacency: Non-negative weights from row to column, dense or sparse CSR, shape (n, n).
        dangling: Where a vertex without outgoing edges leads: ``self-loop`` back to itself, which keeps the matrix
            sparse, or ``uniform``, everywhere alike, as in the paper's own experiments.

    Returns:
        The walk, in the adjacency's layout and dtype.

    Raises:
        InvalidGraph: If ``dangling`` is unknown, or would fill a large sparse matrix.
    """
    out, _ = out_in_degrees(adjacency)
    stuck = out == 0
    adjacency = _with_ways_out(adjacency, stuck, dangling) if bool(stuck.any()) else adjacency
    out, _ = out_in_degrees(adjacency)
    return _scaled_rows(adjacency, 1 / out)


def reversible_operator(
    adjacency: Tensor, measure: Tensor, *, dangling: str = "self-loop"
) -> tuple[Tensor, Tensor]:
    """The parametrised operator ``P_nu = diag(nu + xi)^-1 (N P + P^T N)`` with ``xi = P^T nu``, ``N = diag(nu)``.

    Its rows sum to 1; it is reversible with respect to ``nu + xi``, so its spectrum is real. With ``nu`` in
    proportion to out-degrees it is the walk of ``A + A^T``, with ``nu`` the walk's stationary law it is the additive
    reversibilisation, and on an undirected graph every mix of degrees gives the walk itself (ParPIC, section 3).

    Args:
        adjacency: Non-negative weights from row to column, dense or sparse CSR, shape (n, n).
        measure: The vertex measure ``nu``, non-negative, shape (n,).
        dangling: As for ``random_walk``.

    Returns:
        The operator, shape (n, n) in the adjacency's layout and dtype, and its stationary law, shape (n,).

    Raises:
        ZeroMeasure: If a vertex ends up without mass.
        InvalidGraph: As for ``random_walk``.
    """
    flow = _scaled_rows(random_walk(adjacency, dangling), measure)
    both = flow + flow.t() if flow.layout == torch.strided else _plus_transpose(flow)
    _, reached = out_in_degrees(flow)
    mass = measure + reached
    if bool((mass <= 0).any()):
        raise ZeroMeasure(
            f"{int((mass <= 0).sum())} vertices have no mass under this measure and no edge into them",
            "choose gamma below 1, or another measure",
        )
    return _scaled_rows(both, 1 / mass), mass / mass.sum()


def _scaled_rows(matrix: Tensor, factors: Tensor) -> Tensor:
    if matrix.layout == torch.strided:
        return factors[:, None] * matrix
    rows, columns, weights = edges(matrix)
    return csr(rows, columns, factors[rows] * weights, len(matrix))


def _plus_transpose(matrix: Tensor) -> Tensor:
    rows, columns, weights = edges(matrix)
    return csr(
        torch.cat([rows, columns]), torch.cat([columns, rows]), torch.cat([weights, weights]), len(matrix)
    )


def _with_ways_out(adjacency: Tensor, stuck: Tensor, dangling: str) -> Tensor:
    size, sparse = len(adjacency), adjacency.layout != torch.strided
    if dangling == "self-loop":
        rows = columns = stuck.nonzero()[:, 0]
    elif dangling == "uniform":
        count = int(stuck.sum())
        if sparse and count * size > DENSE_ENTRIES:
            raise InvalidGraph(
                f"uniform ways out of {count} dangling vertices would fill {count * size} entries",
                "use dangling='self-loop'",
            )
        rows = stuck.nonzero()[:, 0].repeat_interleave(size)
        columns = torch.arange(size, device=stuck.device).repeat(count)
    else:
        raise InvalidGraph(f"dangling is {dangling!r}", "it is 'self-loop' or 'uniform'")
    ones = torch.ones(len(rows), dtype=adjacency.dtype, device=adjacency.device)
    if not sparse:
        return adjacency.index_put((rows, columns), ones)
    own_rows, own_columns, weights = edges(adjacency)
    return csr(
        torch.cat([own_rows, rows]), torch.cat([own_columns, columns]), torch.cat([weights, ones]), size
    )
