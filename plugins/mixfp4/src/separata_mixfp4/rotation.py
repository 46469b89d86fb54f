"""Randomised Hadamard rotations in blocks: they spread outliers over a block before it is quantised."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from .errors import InvalidSetting


@cache
def hadamard(size: int) -> Tensor:
    """Sylvester's Hadamard matrix over ``sqrt(size)``: symmetric, orthogonal, its own inverse.

    Args:
        size: A power of two.

    Returns:
        A ``size x size`` float64 tensor.
    """
    if size < 1 or size & (size - 1):
        raise InvalidSetting(f"a rotation of size {size}", "sizes are powers of two")
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix / math.sqrt(size)


@cache
def signs(width: int, seed: int) -> Tensor:
    """Random signs for each column, the same for the same seed on every machine.

    Args:
        width: How many.
        seed: Of the draw.

    Returns:
        A float64 tensor of 1 and -1.
    """
    drawn = torch.randint(0, 2, (width,), generator=torch.Generator().manual_seed(seed))
    return 1.0 - 2.0 * drawn.double()


def rotate(x: Tensor, size: int, seed: int = 0) -> Tensor:
    """Flip columns by random signs and mix neighbours by a Hadamard matrix; products ``x @ w.T`` stay the same.

    Args:
        x: A ``... x K`` floating tensor.
        size: Columns that are mixed: a power of two that divides K.
        seed: Of the signs.

    Raises:
        InvalidSetting: If the size does not fit.
    """
    width = x.shape[-1]
    matrix = hadamard(size)
    if width % size:
        raise InvalidSetting(
            f"a rotation of size {size} on {width} columns", "the size must divide the columns"
        )
    flipped = x * signs(width, seed).to(x)
    return (flipped.reshape(*x.shape[:-1], width // size, size) @ matrix.to(x)).reshape(x.shape)
