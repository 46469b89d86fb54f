"""Group-wise integer quantisation of keys and values, as KIVI has it, with its codes really packed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .errors import InvalidSetting

SCALE_DTYPE = torch.float16  # what KIVI's and transformers' kernels keep scales in


class Quantised:
    """A tensor as integer codes with one scale and offset for each group along its last dimension.

    ``x = scale code + offset`` with ``offset`` the group's smallest and ``scale`` its range over ``2^bits - 1``
    (asymmetric rounding to nearest, KIVI, eq. 1). Codes are packed as bit planes, eight to a byte, so that any
    number of bits costs exactly that many.

    Args:
        tensor: A ``... x n`` tensor.
        bits: Bits of a code, 1 to 8.
        group: Neighbours along the last dimension that share a scale; 8 divides it, and it divides n.

    Raises:
        InvalidSetting: If bits or group are out of their ranges.
    """

    def __init__(self, tensor: Tensor, bits: int, group: int) -> None:
        if not 1 <= bits <= 8:
            raise InvalidSetting(f"bits is {bits}", "bits is 1 to 8")
        if group < 8 or group % 8 or tensor.shape[-1] % group:
            raise InvalidSetting(
                f"group is {group} for a dimension of {tensor.shape[-1]}",
                "group is a multiple of 8 that divides the dimension",
            )
        self.bits, self.group, self.dtype = bits, group, tensor.dtype
        grouped = torch.unflatten(tensor.float(), -1, (-1, group))
        offset = grouped.amin(-1)
        scale = (grouped.amax(-1) - offset) / (2**bits - 1)
        self.offset, self.scale = offset.to(SCALE_DTYPE), scale.to(SCALE_DTYPE)
        # Rounding against the stored scale, not the exact one, is what keeps the error below half a step.
        step = self.scale.float().clamp_min(torch.finfo(torch.float32).tiny)[..., None]
        codes = ((grouped - self.offset.float()[..., None]) / step).round().clamp(0, 2**bits - 1)
        self.planes = _packed(codes.to(torch.uint8).flatten(-2), bits)

    def dequantise(self) -> Tensor:
        """The tensor again, in its own dtype and shape."""
        codes = torch.unflatten(_unpacked(self.planes, self.bits).float(), -1, (-1, self.group))
        values = codes * self.scale.float()[..., None] + self.offset.float()[..., None]
        flat: Tensor = values.flatten(-2)
        return flat.to(self.dtype)

    def tensors(self) -> Iterator[Tensor]:
        """Everything that it holds."""
        yield from (self.planes, self.scale, self.offset)


def _packed(codes: Tensor, bits: int) -> Tensor:
    weights = (1 << torch.arange(8, device=codes.device)).to(torch.uint8)
    planes = [torch.unflatten((codes >> bit) & 1, -1, (-1, 8)) * weights for bit in range(bits)]
    return torch.stack([plane.sum(-1, dtype=torch.uint8) for plane in planes])


def _unpacked(planes: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(8, device=planes.device, dtype=torch.uint8)
    codes = torch.zeros((), dtype=torch.uint8, device=planes.device)
    for bit in range(bits):
        codes = codes | (((planes[bit][..., None] >> shifts) & 1) << bit)
    return codes.flatten(-2)
