"""How alike the states of two layers are: linear CKA, token-wise cosine, and effective rank."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def linear_cka(first: Tensor, second: Tensor) -> Tensor:
    """Linear centred kernel alignment (Kornblith et al., 2019): 1 if the subspaces match, whatever the basis.

    ``CKA = |X^T Y|^2 / (|X^T X| |Y^T Y|)`` in Frobenius norms, columns centred.

    Args:
        first: A ``tokens x width`` tensor.
        second: A ``tokens x other width`` tensor.

    Returns:
        A scalar in [0, 1], float64; 0 if either has no variance.
    """
    return cka_matrix([first, second])[0, 1]


def cka_matrix(states: Sequence[Tensor], reach: int | None = None) -> Tensor:
    """Linear CKA of each pair of layers.

    Args:
        states: For each of n layers a ``tokens x width`` tensor; widths may differ.
        reach: Only pairs at most so many layers apart; all if not given.

    Returns:
        A symmetric float64 ``n x n`` tensor; 0 for pairs out of reach and for layers without variance.
    """
    centred = [layer.double() - layer.double().mean(0) for layer in states]
    scale = [torch.linalg.matrix_norm(layer.mT @ layer) for layer in centred]
    found = torch.zeros(len(states), len(states), dtype=torch.float64, device=states[0].device)
    for one, layer in enumerate(centred):
        first = 0 if reach is None else max(one - reach, 0)
        for other in range(first, one + 1):
            product = scale[one] * scale[other]
            if product > 0:
                found[one, other] = found[other, one] = (layer.mT @ centred[other]).square().sum() / product
    return found


def token_cosine(first: Tensor, second: Tensor) -> Tensor:
    """Mean cosine between the states of the same token in two layers.

    Args:
        first: A ``tokens x width`` tensor.
        second: A tensor of the same shape.

    Returns:
        A scalar in [-1, 1], float64.
    """
    return torch.nn.functional.cosine_similarity(first.double(), second.double(), dim=-1).mean()


def effective_rank(energies: Tensor, share: float) -> int:
    """How many singular vectors hold this share of the squared Frobenius norm.

    Args:
        energies: Squared singular values, in any order.
        share: Between 0 and 1.
    """
    ordered = energies.double().clamp_min(0).sort(descending=True).values
    cumulative = ordered.cumsum(0)
    # A relative slack of float64 rounding keeps a share of 1 from asking for the zeros at the end.
    enough = cumulative >= share * cumulative[-1] * (1 - 1e-12)
    return int(enough.int().argmax()) + 1
