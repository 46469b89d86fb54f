"""Vertex measures: how much mass the reversible operator gives to the random walk of each vertex."""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import InvalidSetting
from .operators import out_in_degrees, random_walk

MEASURES = ("degree", "uniform", "harmonic", "walk")


def vertex_measure(
    adjacency: Tensor, kind: str = "degree", *, gamma: float = 0.5, steps: int = 3, power: float = 1.0
) -> Tensor:
    """A probability measure over the vertices.

    Args:
        adjacency: Non-negative weights from row to column, dense or sparse CSR, shape (n, n).
        kind: ``degree``, the mix ``gamma * d_in / m + (1 - gamma) * d_out / m`` of in- and out-degrees;
            ``uniform``; ``harmonic``, the harmonic mean of the two degrees; ``walk``, where the random walk from a
            uniform start is after ``steps``, to a ``power``.
        gamma: Share of the in-degrees, from 0 to 1. At 0 the operator is the walk of ``A + A^T``.
        steps: Steps of the walk.
        power: Exponent of the walk's law: 0 makes it uniform.

    Returns:
        Shape (n,), in the adjacency's dtype; sums to 1.

    Raises:
        InvalidSetting: If a setting is out of range.
    """
    if kind not in MEASURES:
        raise InvalidSetting(f"measure is {kind!r}", f"name one of {', '.join(MEASURES)}, or give a vector")
    if not 0 <= gamma <= 1:
        raise InvalidSetting(f"gamma is {gamma}", "it lies between 0 and 1")
    if steps < 1:
        raise InvalidSetting(f"steps is {steps}", "the walk takes at least one")
    out, into = out_in_degrees(adjacency)
    if kind == "degree":
        mass = gamma * into + (1 - gamma) * out
    elif kind == "harmonic":
        mass = torch.where(out + into > 0, 2 * out * into / (out + into), 0.0)
    elif kind == "walk":
        mass = _walked(adjacency, steps) ** power
    else:
        mass = torch.ones_like(out)
    return mass / mass.sum()


def _walked(adjacency: Tensor, steps: int) -> Tensor:
    backwards = random_walk(adjacency).t()
    if backwards.layout != torch.strided:
        backwards = backwards.to_sparse_csr()
    law = torch.full((len(adjacency), 1), 1 / len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
    for _ in range(steps):
        law = backwards @ law
    return law[:, 0]
