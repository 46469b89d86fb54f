"""Quantise tensors to MixFP4, and to what it is compared with: NVFP4, NVINT4 and Four Over Six.

>>> x = torch.randn(4, 64)
>>> stored = quantize(x)
>>> stored.codes.shape, stored.scales.shape, stored.nbytes
(torch.Size([4, 32]), torch.Size([4, 4]), 148)
>>> torch.equal(stored.dequantize(), fake_quantize(x))
True
"""

from __future__ import annotations

from typing import cast, get_args

import attrs
import torch
from torch import Tensor

from .blocks import SCHEMES, Chosen, Scheme, Select, choose, largest_of
from .errors import GroupMismatch, InvalidSetting, NonFinite
from .formats import Rounding
from .tensor import MixFP4Tensor, assemble

_LARGEST_DIVISOR = 2.0**120


@attrs.frozen
class Blocked:
    """A tensor cut into blocks, with the scales that all of them need."""

    blocks: Tensor
    largest: Tensor
    global_scale: Tensor
    divisor: Tensor
    rows: tuple[int, ...]
    scheme: Scheme

    def chosen(
        self, select: str, rounding: Rounding, generator: torch.Generator | None, dequantize: bool
    ) -> Chosen:
        """Candidates, scales and elements of all blocks."""
        return choose(
            self.blocks,
            self.largest,
            self.divisor,
            self.scheme,
            select=cast(Select, select),
            rounding=rounding,
            generator=generator,
            dequantize=dequantize,
        )


def quantize(
    x: Tensor,
    *,
    method: str = "mixfp4",
    group: int = 16,
    select: str = "mse",
    rounding: Rounding = "nearest_even",
    generator: torch.Generator | None = None,
    per_row: bool = False,
    pad: bool = False,
) -> MixFP4Tensor:
    """Store a tensor in 4-bit blocks along its last dimension (MixFP4, Algorithm 1).

    Args:
        x: A ``... x K`` floating tensor; half precision is widened to float32, float64 is worked on as it is.
        method: ``mixfp4``, or ``nvfp4``, ``nvint4``, ``fouroversix``, which all have the same layout.
        group: Elements of a block; the paper finds 32 and 64 worse than 16.
        select: ``mse`` tries both grids; ``crest`` chooses by the crest factor, which is cheaper and a little worse.
        rounding: Of the elements: one of ``Rounding``. The paper names none; ``nearest_even`` is IEEE's and OCP's.
            With ``stochastic`` each element is unbiased: its grid does not depend on its draw, and scales are
            rounded up so that none is cut off.
        generator: Draws for ``stochastic``.
        per_row: Give each row a tensor scale of its own, as for activations whose tokens must not see each other.
        pad: Fill the last block of a row with zeros; dequantising leaves them out again.

    Returns:
        The stored tensor.

    Raises:
        GroupMismatch: If K is no multiple of ``group`` and ``pad`` is not set.
        NonFinite: If there is a NaN, an infinity or a number beyond float32.
        InvalidSetting: If a setting is unknown.
    """
    cut = blocked(x, method, group, select, per_row, pad)
    chosen = cut.chosen(select, rounding, generator, False)
    return assemble(
        chosen.elements.view(*cut.rows, group),
        cut.blocks.signbit().view(*cut.rows, group),
        chosen.scales.view(cut.rows),
        cut.scheme.uniform(chosen.last).view(cut.rows),
        cut.global_scale,
        shape=x.shape,
        group=group,
    )


def fake_quantize(
    x: Tensor,
    *,
    method: str = "mixfp4",
    group: int = 16,
    select: str = "mse",
    rounding: Rounding = "nearest_even",
    generator: torch.Generator | None = None,
    per_row: bool = False,
    pad: bool = False,
) -> Tensor:
    """What ``quantize(x, ...).dequantize(x.dtype)`` gives, faster because nothing is packed.

    Takes and raises what ``quantize`` does, and returns a tensor of x's shape and dtype.
    """
    cut = blocked(x, method, group, select, per_row, pad)
    numbers = cut.chosen(select, rounding, generator, True).elements.view(
        *cut.rows[:-1], cut.rows[-1] * group
    )
    return numbers[..., : x.shape[-1]].to(x.dtype)


def blocked(x: Tensor, method: str, group: int, select: str, per_row: bool, pad: bool) -> Blocked:
    """Check a tensor and its settings, and cut it into blocks.

    Args:
        x: A ``... x K`` floating tensor.
        method: A name in ``SCHEMES``.
        group: Elements of a block.
        select: A name in ``Select``.
        per_row: Whether each row has its own tensor scale.
        pad: Whether to fill up the last block of a row.
    """
    _check(x, method, group, select)
    scheme = SCHEMES[method]
    wide = x.detach().to(torch.promote_types(x.dtype, torch.float32)).contiguous()
    missing = -x.shape[-1] % group
    if missing and not pad:
        raise GroupMismatch(
            f"dimension {x.ndim - 1} of shape {tuple(x.shape)} is no multiple of {group}",
            f"blocks of {group} lie along it: pass pad=True to fill the last one with zeros",
        )
    if missing:
        wide = torch.nn.functional.pad(wide, (0, missing))
    count = wide.shape[-1] // group
    rows = (*x.shape[:-1], count)
    blocks = wide.view(-1, group)
    largest = largest_of(blocks)
    global_scale = _global_scale(largest.view(rows), scheme.reach, per_row)
    if not bool(global_scale.isfinite().all()):
        raise NonFinite.found(x.float(), "only numbers that are finite in float32 are quantised")
    divisor = global_scale.expand(rows).reshape(-1) if per_row else global_scale
    return Blocked(blocks, largest, global_scale, divisor, rows, scheme)


def _check(x: Tensor, method: str, group: int, select: str) -> None:
    if method not in SCHEMES:
        raise InvalidSetting(f"method is {method!r}", f"method is one of {', '.join(SCHEMES)}")
    if select not in get_args(Select):
        raise InvalidSetting(f"select is {select!r}", f"select is one of {', '.join(get_args(Select))}")
    if group < 4 or group % 2:
        raise InvalidSetting(f"group is {group}", "blocks have an even number of elements, at least 4")
    if not x.is_floating_point() or not x.ndim:
        raise InvalidSetting(
            f"a tensor of {x.dtype} with {x.ndim} dimensions",
            "a floating tensor with a last dimension is cut",
        )


def _global_scale(largest: Tensor, reach: float, per_row: bool) -> Tensor:
    """One over the tensor scale, in float32: ``reach / max|x|``; 1 where all are zero, NaN where one is not finite."""
    if not largest.numel():
        shape = (*largest.shape[:-1], 1) if per_row else ()
        return torch.ones(shape, device=largest.device)
    top = largest.amax(-1, keepdim=True) if per_row else largest.max()
    scale = torch.where(top == 0, 1.0, (reach / top).clamp(max=_LARGEST_DIVISOR)).float()
    # Over infinity it would be zero, and nothing would be seen of it.
    return torch.where(top.float().isinf(), torch.nan, scale)
