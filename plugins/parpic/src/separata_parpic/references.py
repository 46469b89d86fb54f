"""The kernels in plain float64 matrices, as their equations stand."""

from __future__ import annotations

import torch
from torch import Tensor


def reversible_operator_reference(adjacency: Tensor, measure: Tensor) -> tuple[Tensor, Tensor]:
    """``diag(nu + xi)^-1 (N P + P^T N)`` with dense matrices; vertices without ways out lead to themselves."""
    adjacency = adjacency.double()
    adjacency = adjacency + torch.diag((adjacency.sum(1) == 0).double())
    walk = torch.diag(1 / adjacency.sum(1)) @ adjacency
    nu = measure.double()
    xi = walk.T @ nu
    operator = torch.diag(1 / (nu + xi)) @ (torch.diag(nu) @ walk + walk.T @ torch.diag(nu))
    return operator, (nu + xi) / (nu + xi).sum()


def diffuse_reference(operator: Tensor, signals: Tensor, steps: int) -> Tensor:
    """The matrix power, and one product."""
    power: Tensor = torch.linalg.matrix_power(operator.double(), steps)
    return power @ signals.double()


def vertex_measure_reference(adjacency: Tensor, *, gamma: float = 0.5) -> Tensor:
    """The mix of the normalised degrees, vertex by vertex."""
    adjacency = adjacency.double()
    total = adjacency.sum()
    size = len(adjacency)
    return torch.stack(
        [
            gamma * adjacency[:, vertex].sum() / total + (1 - gamma) * adjacency[vertex].sum() / total
            for vertex in range(size)
        ]
    )
