"""Two 4-bit codes a byte: the even index in the low half, as compressed-tensors and the hardware have it."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from .errors import BadCodes
from .formats import FloatFormat


def pack_nibbles(codes: Tensor) -> Tensor:
    """Pack neighbours of the last dimension into bytes.

    Args:
        codes: A ``... x K`` uint8 tensor of numbers below 16, K even.

    Returns:
        A ``... x K/2`` uint8 tensor.

    Raises:
        BadCodes: If K is odd.
    """
    if codes.shape[-1] % 2:
        raise BadCodes(
            f"{codes.shape[-1]} codes in a row", "two codes fill a byte: pad the row to an even length"
        )
    return (codes[..., 1::2] << 4).bitwise_or_(codes[..., 0::2])


def unpack_nibbles(packed: Tensor) -> Tensor:
    """Undo ``pack_nibbles``.

    Args:
        packed: A ``... x K/2`` uint8 tensor.

    Returns:
        A ``... x K`` uint8 tensor of numbers below 16.
    """
    return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)


def decode_nibbles(packed: Tensor, form: FloatFormat, dtype: torch.dtype = torch.float32) -> Tensor:
    """The numbers of packed codes, looked up two at a time.

    Args:
        packed: A ``... x K/2`` uint8 tensor.
        form: A format of at most 4 bits.
        dtype: Of the result.

    Returns:
        A ``... x K`` tensor.
    """
    pairs = _pairs(form, dtype, packed.device)
    found = torch.index_select(pairs, 0, packed.reshape(-1).int())
    return found.view(*packed.shape[:-1], -1) if packed.numel() else found.view(*packed.shape[:-1], 0)


@cache
def _pairs(form: FloatFormat, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Both numbers of each of the 256 bytes."""
    every = torch.arange(256, dtype=torch.uint8, device=device)
    return form.decode(unpack_nibbles(every[:, None]), dtype)
