"""Soft thresholding, a working example of a kernel: put the paper's function here."""

from __future__ import annotations

import torch
from torch import Tensor


def soft_threshold(x: Tensor, level: float) -> Tensor:
    """Shrink each number towards zero by a level, and stop there.

    Args:
        x: A floating tensor of any shape.
        level: How far, at least 0.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ValueError: If the level is negative.
    """
    if level < 0:
        raise ValueError(f"level is {level}; it is at least 0")
    return torch.nn.functional.softshrink(x, level)


def soft_threshold_reference(x: Tensor, level: float) -> Tensor:
    """The same, element by element, in the words of its definition."""
    shrunk = [max(abs(value) - level, 0.0) * (1 if value > 0 else -1) for value in x.flatten().tolist()]
    return torch.tensor(shrunk, dtype=x.dtype).reshape(x.shape)
