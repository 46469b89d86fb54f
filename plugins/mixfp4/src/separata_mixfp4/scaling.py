"""Tensors in a small format with float32 scales: one for the tensor, for each row, or for each group of a row."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import torch
from torch import Tensor

from .errors import BadCodes, GroupMismatch, InvalidSetting, NonFinite
from .formats import FloatFormat, Rounding
from .packing import decode_nibbles, pack_nibbles

Granularity: TypeAlias = int | Literal["tensor", "row"]
"""What shares a scale: the whole tensor, a row (the last dimension), or so many neighbours in a row."""


@attrs.frozen
class ScaledFormat:
    """An element format with a scale for each tensor, row or group, set by its largest magnitude.

    >>> from separata_mixfp4.formats import E4M3FN
    >>> weight = torch.randn(64, 256)
    >>> stored = ScaledFormat(E4M3FN, "row").quantize(weight)
    >>> stored.nbytes, stored.dequantize().shape
    (16640, torch.Size([64, 256]))

    Args:
        element: Format of the elements.
        granularity: ``tensor``, ``row`` or the size of a group.
    """

    element: FloatFormat
    granularity: Granularity = "row"

    def __attrs_post_init__(self) -> None:
        size = self.granularity
        if size not in ("tensor", "row") and not (isinstance(size, int) and size >= 1):
            raise InvalidSetting(f"granularity is {size!r}", "it is tensor, row, or a number of neighbours")

    def scales(self, x: Tensor) -> Tensor:
        """The scale by which the largest magnitude of each part becomes the format's largest number.

        Args:
            x: A ``... x K`` floating tensor.

        Returns:
            A float32 tensor: of no dimension for ``tensor``, ``... x 1`` for ``row``, ``... x K/group`` for groups. A
            part of zeros has scale 1; no scale is subnormal.

        Raises:
            GroupMismatch: If groups don't fill the rows.
            NonFinite: If there is a NaN, an infinity or a number beyond float32.
        """
        largest = (
            largest_magnitude(x) if self.granularity == "tensor" else largest_magnitude(self._grouped(x), -1)
        )
        scales = largest.to(torch.promote_types(x.dtype, torch.float32)).div_(self.element.max).float()
        if not bool(scales.isfinite().all()):
            raise NonFinite.found(x.float(), "only numbers that are finite in float32 are quantised")
        tiny = torch.finfo(torch.float32).tiny
        return torch.where(scales == 0, 1.0, scales.clamp_(min=tiny))

    def quantize(
        self,
        x: Tensor,
        scales: Tensor | None = None,
        rounding: Rounding = "nearest_even",
        generator: torch.Generator | None = None,
    ) -> ScaledTensor:
        """Codes and scales of a tensor.

        Args:
            x: A ``... x K`` floating tensor; K is even if codes have 4 bits.
            scales: Scales that are kept, as ``scales`` returns them; x's own if not given.
            rounding: One of ``Rounding``.
            generator: Draws for ``stochastic``.
        """
        scales = self.scales(x) if scales is None else scales
        codes = self.element.encode(self._scaled(x, scales), rounding, generator).view(x.shape)
        return ScaledTensor(pack_nibbles(codes) if self.element.bits <= 4 else codes, scales, x.shape, self)

    def fake_quantize(
        self,
        x: Tensor,
        scales: Tensor | None = None,
        rounding: Rounding = "nearest_even",
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """What ``quantize(...).dequantize(x.dtype)`` gives, without the codes."""
        scales = self.scales(x) if scales is None else scales
        rounded = self.element.round(self._scaled(x, scales), rounding, generator)
        return rounded.mul_(self._spread(scales)).view(x.shape).to(x.dtype)

    def _scaled(self, x: Tensor, scales: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return self._grouped(wide) / self._spread(scales)

    def _grouped(self, x: Tensor) -> Tensor:
        if not isinstance(self.granularity, int):
            return x if self.granularity == "tensor" else x.unsqueeze(-2)
        return grouped(x, self.granularity)

    def _spread(self, scales: Tensor) -> Tensor:
        return scales if self.granularity == "tensor" else scales.unsqueeze(-1)


@attrs.frozen(eq=False)
class ScaledTensor:
    """A quantised tensor as it is stored.

    Args:
        codes: uint8: ``... x K``, or ``... x K/2`` with two 4-bit codes a byte, the even index in the low half.
        scales: float32, as ``ScaledFormat.scales`` returns them.
        shape: Of the tensor, ``... x K``.
        form: Element format and granularity.
    """

    codes: Tensor
    scales: Tensor
    shape: torch.Size = attrs.field(converter=torch.Size)
    form: ScaledFormat

    def __attrs_post_init__(self) -> None:
        packed = 2 if self.form.element.bits <= 4 else 1
        if self.codes.dtype != torch.uint8 or self.codes.numel() * packed != self.shape.numel():
            raise BadCodes(
                f"{self.codes.numel()} codes of {self.codes.dtype} for shape {tuple(self.shape)}",
                f"{self.form.element.name} has {packed} codes a byte, and codes are uint8",
            )

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The numbers in a floating dtype; products are formed in float32, or in float64 if that is asked for."""
        wide = torch.promote_types(dtype, torch.float32)
        element, codes = self.form.element, self.codes
        numbers = decode_nibbles(codes, element, wide) if element.bits <= 4 else element.decode(codes, wide)
        parts = self.form._grouped(numbers.view(self.shape))
        return parts.mul_(self.form._spread(self.scales)).view(self.shape).to(dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes


def largest_magnitude(x: Tensor, dim: int | None = None) -> Tensor:
    """Largest ``|x|`` of all or along a dimension; 0 where there is nothing, NaN where there is one."""
    if dim is None:
        x, dim = x.reshape(-1), 0
    if not x.shape[dim]:
        return x.sum(dim)
    return x.abs().amax(dim)


def grouped(x: Tensor, size: int) -> Tensor:
    """View rows as groups: ``... x K`` to ``... x K/size x size``.

    Raises:
        GroupMismatch: If the groups don't fill the rows.
    """
    if not x.ndim or x.shape[-1] % size:
        raise GroupMismatch(
            f"the last dimension of shape {tuple(x.shape)} is no multiple of {size}",
            f"pad it to a multiple of {size}, or choose a group that divides it",
        )
    return x.reshape(*x.shape[:-1], x.shape[-1] // size, size)
