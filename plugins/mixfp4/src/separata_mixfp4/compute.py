"""How MixFP4 is multiplied: both grids become one 5-bit float E2M2, and products of those are whole sixteenths.

``integer_matmul`` is the oracle for hardware: it uses integers alone until the last step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import BadCodes
from .formats import E2M1, E2M2, E4M3FN, INT4, FloatFormat
from .packing import unpack_nibbles
from .quantizer import fake_quantize
from .tensor import MixFP4Tensor


def e2m2_table(form: FloatFormat) -> Tensor:
    """The E2M2 code for each of the 16 codes of an element format: what a decoder before the multiplier holds.

    Args:
        form: E2M1 or INT4; both are contained in E2M2.

    Returns:
        A uint8 tensor of 16 codes below 32.
    """
    return E2M2.encode(form.values())


def integer_matmul(x: MixFP4Tensor, weight: MixFP4Tensor) -> Tensor:
    """``x @ weight.T`` of two stored matrices, exact until it is divided by the tensor scales.

    Every E2M2 number is a multiple of 1/4 and every E4M3 number one of 2^-9. A block's dot product is thus a whole
    number of sixteenths, scaled by a whole number of 2^-18, and the sum over blocks fits into 64 bits up to 2^13
    blocks.

    Args:
        x: A stored ``M x K`` matrix.
        weight: A stored ``N x K`` matrix with the same group.

    Returns:
        An ``M x N`` float64 tensor: the integer sums times 2^-22, over both global scales.

    Raises:
        BadCodes: If they are not matrices of the same K and group.
    """
    if (
        len(x.shape) != 2
        or len(weight.shape) != 2
        or x.shape[1] != weight.shape[1]
        or x.group != weight.group
    ):
        raise BadCodes(
            f"shapes {tuple(x.shape)} and {tuple(weight.shape)}, groups {x.group} and {weight.group}",
            "both are matrices with the same number of columns and the same group",
        )
    total = torch.zeros(x.shape[0], weight.shape[0], dtype=torch.int64)
    left, left_scales = _integers(x)
    right, right_scales = _integers(weight)
    for block in range(left.shape[1]):
        dots = left[:, block] @ right[:, block].T
        total += dots * left_scales[:, block, None] * right_scales[:, block]
    divisor = x.global_scale.double().view(-1, 1) * weight.global_scale.double().view(1, -1)
    return total.double() * 2.0**-22 / divisor


def linear(
    x: Tensor,
    weight: MixFP4Tensor,
    bias: Tensor | None = None,
    *,
    method: str | None = "mixfp4",
    per_row: bool = False,
) -> Tensor:
    """A linear layer on a stored weight; the input is quantised on the way (W4A4) or not (W4A16).

    Args:
        x: A ``... x K`` floating tensor.
        weight: A stored ``N x K`` matrix.
        bias: N numbers.
        method: How x is quantised, as for ``fake_quantize``; None leaves it as it is.
        per_row: Whether each row of x has its own tensor scale.

    Returns:
        A ``... x N`` tensor in x's dtype.
    """
    if method is not None:
        x = fake_quantize(x, method=method, group=weight.group, per_row=per_row, pad=True)
    return torch.nn.functional.linear(x, weight.dequantize(x.dtype), bias)


def _integers(stored: MixFP4Tensor) -> tuple[Tensor, Tensor]:
    """Elements in quarters, ``rows x blocks x group``, and scales in units of 2^-9, ``rows x blocks``."""
    codes = unpack_nibbles(stored.codes).view(*stored.scales.shape, stored.group).int()
    quarters = [(4 * E2M2.decode(e2m2_table(form))).long() for form in (E2M1, INT4)]
    elements = torch.where(stored.uniform[..., None], quarters[1][codes], quarters[0][codes])
    return elements, (512 * E4M3FN.decode(stored.scales & 0x7F)).long()
