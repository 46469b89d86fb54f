"""A tensor as MixFP4 stores it: packed codes, E4M3 scales with the grid in bit 7, one float32 scale for all."""

from __future__ import annotations

from typing import Any

import attrs
import torch
from torch import Tensor

from .blocks import FLOATING, UNIFORM
from .errors import BadCodes
from .formats import E2M1, E4M3FN, INT4
from .packing import pack_nibbles, unpack_nibbles

UNIFORM_BIT = 0x80
"""Bit 7 of a scale's byte, E4M3's sign, which no scale needs: set for a block on the uniform grid."""


@attrs.frozen(eq=False)
class MixFP4Tensor:
    """Four-bit blocks along the last dimension.

    A number is ``element * scale / global_scale``: the element as its block's grid has it (E2M1, or -7..7), the scale
    from its E4M3 byte. ``global_scale`` is one over the paper's tensor scale, as files of compressed-tensors have it.

    Args:
        codes: A ``... x K/2`` uint8 tensor, two codes a byte, the even index in the low half. K is padded to blocks.
        scales: A ``... x K/group`` uint8 tensor: E4M3 in bits 0-6, bit 7 set for the uniform grid.
        global_scale: float32, of no dimension, or ``... x 1`` with one for each row.
        shape: The tensor's own shape; its last dimension may be less than K.
        group: Elements of a block.
    """

    codes: Tensor
    scales: Tensor
    global_scale: Tensor
    shape: torch.Size = attrs.field(converter=torch.Size)
    group: int = 16

    def __attrs_post_init__(self) -> None:
        whole = -(-self.shape[-1] // self.group) * self.group if self.shape else 0
        if (
            self.codes.dtype != torch.uint8
            or self.scales.dtype != torch.uint8
            or self.codes.shape != (*self.shape[:-1], whole // 2)
            or self.scales.shape != (*self.shape[:-1], whole // self.group)
        ):
            raise BadCodes(
                f"codes {self.codes.dtype} {tuple(self.codes.shape)} and scales {self.scales.dtype} "
                f"{tuple(self.scales.shape)} for a tensor of shape {tuple(self.shape)}",
                f"both are uint8; a row of K has K/2 codes and K/{self.group} scales",
            )

    @property
    def uniform(self) -> Tensor:
        """Which blocks are on the uniform grid: a boolean tensor of the shape of ``scales``."""
        return self.scales >= UNIFORM_BIT

    @property
    def empty_blocks(self) -> Tensor:
        """Which blocks are zeros because their scale is: they held zeros, or numbers too small for E4M3."""
        return (self.scales & 0x7F) == 0

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and tensor scale: 4.5 bits a number for blocks of 16."""
        return self.codes.nbytes + self.scales.nbytes + self.global_scale.nbytes

    def elements(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The codes as numbers of their grids, without scales: a ``... x K/group x group`` tensor."""
        codes = unpack_nibbles(self.codes).view(*self.scales.shape, self.group)
        # One table for both grids: the codes of the uniform one stand 16 places further.
        table = torch.cat([E2M1.values(dtype, codes.device), INT4.values(dtype, codes.device)])
        return torch.index_select(
            table, 0, (codes | (self.uniform.to(torch.uint8) << 4)[..., None]).flatten().int()
        ).view(codes.shape)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The numbers; products are formed in float32, or in float64 if that is asked for.

        Args:
            dtype: Of the result.
        """
        wide = torch.promote_types(dtype, torch.float32)
        steps = E4M3FN.decode(self.scales & 0x7F, wide) / self.global_scale.to(wide)
        numbers = self.elements(wide).mul_(steps[..., None]).flatten(-2)
        return numbers[..., : self.shape[-1]].to(dtype)

    def to(self, device: torch.device | str) -> MixFP4Tensor:
        """The same tensor on another device."""
        return attrs.evolve(
            self,
            codes=self.codes.to(device),
            scales=self.scales.to(device),
            global_scale=self.global_scale.to(device),
        )


def assemble(
    elements: Tensor, negative: Tensor, scales: Tensor, uniform: Tensor, global_scale: Tensor, **rest: Any
) -> MixFP4Tensor:
    """Pack elements that are on their grids.

    Args:
        elements: A ``... x K/group x group`` tensor of grid elements.
        negative: Which of them are below zero, or a zero with a minus: a boolean tensor of the same shape.
        scales: A ``... x K/group`` tensor of E4M3 numbers.
        uniform: Which blocks are on the uniform grid: a boolean tensor of that shape.
        global_scale: One over the tensor scale.
        rest: ``shape`` and ``group`` of the tensor.
    """
    table = torch.zeros(32, dtype=torch.uint8)
    for offset, candidate in ((0, FLOATING), (16, UNIFORM)):
        for code in range(8):
            table[offset + int(2 * candidate.element.magnitude(code))] = code
    place = elements.abs().mul_(2).to(torch.int32) + (uniform.to(torch.int32) << 4)[..., None]
    codes = torch.index_select(table.to(elements.device), 0, place.flatten()).view(elements.shape)
    codes |= negative.to(torch.uint8) << 3
    flags = uniform.to(torch.uint8) * UNIFORM_BIT
    return MixFP4Tensor(pack_nibbles(codes.flatten(-2)), E4M3FN.encode(scales) | flags, global_scale, **rest)
