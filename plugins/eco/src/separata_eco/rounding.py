"""Stochastic rounding of float32 to bfloat16, for a momentum of two bytes."""

from __future__ import annotations

import torch
from torch import Tensor

_LOST = 16  # bits of float32 that bfloat16 has not


def to_bfloat16(x: Tensor, generator: torch.Generator) -> Tensor:
    """Round to one of both neighbours so that the mean is x.

    bfloat16 is the upper half of float32, so a draw below one unit in its last place, added to the bits, carries over
    with just the right probability, subnormals included.

    Args:
        x: A finite float32 or float64 tensor; float64 is rounded to float32 first.
        generator: Of the draws, on x's device; probabilities are exact to 2^-16.

    Returns:
        A bfloat16 tensor. What would round beyond its largest number becomes that.
    """
    largest = torch.finfo(torch.bfloat16).max
    bits = x.float().clamp(-largest, largest).view(torch.int32)
    draws = torch.randint(1 << _LOST, x.shape, dtype=torch.int32, generator=generator, device=x.device)
    return ((bits + draws) & -(1 << _LOST)).view(torch.float32).to(torch.bfloat16)
