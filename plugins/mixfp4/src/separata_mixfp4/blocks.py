"""The arithmetic of 4-bit blocks: which grid each block takes, its E4M3 scale, and its elements on that grid.

Blocks are the rows of a matrix here. They are worked on a cache-sized piece at a time, because each of the twenty or
so elementwise passes would otherwise go to memory and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs
import torch
from torch import Tensor

from .formats import E2M1, E4M3FN, INT4, FloatFormat, Rounding, to_integer
from .theory import crossover

Select: TypeAlias = Literal["mse", "crest"]

PIECE = 1 << 16  # elements: small enough for a cache, large enough that calling torch costs little


@attrs.frozen
class Candidate:
    """One way to store a block.

    Args:
        element: Format of its elements.
        target: The number that the block's largest magnitude is scaled to.
    """

    element: FloatFormat
    target: float

    @property
    def uniform(self) -> bool:
        """Whether it is the uniform grid, which bit 7 of the scale says."""
        return self.element == INT4


@attrs.frozen
class Scheme:
    """A family of 4-bit blocks.

    Args:
        candidates: One or two; of two equally good ones the last is taken (MixFP4, Algorithm 1).
        reach: The tensor's largest magnitude over its tensor scale.
    """

    candidates: tuple[Candidate, ...]
    reach: float

    def uniform(self, took_last: Tensor) -> Tensor:
        """Whether each block is on the uniform grid, as booleans, from whether it took the last candidate."""
        return torch.where(took_last, self.candidates[-1].uniform, self.candidates[0].uniform)


FLOATING, UNIFORM = Candidate(E2M1, 6.0), Candidate(INT4, 7.0)
SCHEMES: dict[str, Scheme] = {
    "mixfp4": Scheme((FLOATING, UNIFORM), 6 * 448),
    "nvfp4": Scheme((FLOATING,), 6 * 448),
    "nvint4": Scheme((UNIFORM,), 6 * 448),
    # 256, because a scale half as large again must fit into E4M3 too; a tie keeps the target 6.
    "fouroversix": Scheme((Candidate(E2M1, 4.0), FLOATING), 6 * 256),
}


@attrs.frozen
class Chosen:
    """What was decided for each block.

    Args:
        elements: A ``blocks x size`` tensor of elements on their grid, or of those already multiplied by the steps.
        scales: ``blocks`` numbers of E4M3.
        last: ``blocks`` booleans: whether the scheme's last candidate was taken.
    """

    elements: Tensor
    scales: Tensor
    last: Tensor


def largest_of(blocks: Tensor) -> Tensor:
    """Largest magnitude of each row.

    Args:
        blocks: A ``blocks x size`` tensor.
    """
    found = blocks.new_empty(len(blocks))
    for part in pieces(blocks):
        torch.amax(blocks[part].abs(), dim=-1, out=found[part])
    return found


def pieces(blocks: Tensor) -> Iterator[slice]:
    """Slices of rows that fit into the cache together with their scratch."""
    rows = max(1, PIECE // blocks.shape[1])
    for begin in range(0, len(blocks), rows):
        yield slice(begin, min(begin + rows, len(blocks)))


def choose(
    blocks: Tensor,
    largest: Tensor,
    divisor: Tensor,
    scheme: Scheme,
    *,
    select: Select = "mse",
    rounding: Rounding = "nearest_even",
    generator: torch.Generator | None = None,
    dequantize: bool = False,
) -> Chosen:
    """Decide each block's candidate and scale, and put its elements on the grid.

    Args:
        blocks: A ``blocks x size`` float32 or float64 tensor.
        largest: Largest magnitude of each block.
        divisor: One over the tensor scale: one number for each block, or one for all.
        scheme: What there is to choose from.
        select: ``mse`` tries all candidates and keeps the smallest squared error; ``crest`` looks at the crest factor.
        rounding: Of the elements. With ``stochastic`` the candidate is chosen on the error of ``nearest_even`` and
            scales are rounded up: a choice that sees the draws, or a largest element cut off, would bias the result.
        generator: Draws for ``stochastic``.
        dequantize: Multiply the elements by their steps.
    """
    divisor = divisor.to(blocks.dtype).expand(len(blocks))
    first, last = scheme.candidates[0], scheme.candidates[-1]
    if select == "crest" and first.uniform != last.uniform:
        energy, size = torch.linalg.vecdot(blocks, blocks), blocks.shape[1]
        took_last = largest.square() * size < crossover(size) ** 2 * energy
    else:
        nearest = "nearest_even" if rounding == "stochastic" else rounding
        best = _best(blocks, largest, divisor, scheme, nearest, dequantize)
        if rounding != "stochastic":
            return best
        took_last = best.last
    target = torch.where(took_last, last.target, first.target)
    scale_rounding: Rounding = "away_from_zero" if rounding == "stochastic" else "nearest_even"
    scales = block_scales(largest, divisor, target, scale_rounding)
    steps = scales / divisor
    elements = on_grid(blocks, steps, scheme.uniform(took_last), rounding, generator)
    return Chosen(elements * steps[:, None] if dequantize else elements, scales, took_last)


def block_scales(
    largest: Tensor, divisor: Tensor, target: float | Tensor, rounding: Rounding = "nearest_even"
) -> Tensor:
    """Scales in E4M3, as numbers: ``E4M3(largest / target / tensor scale)``.

    Args:
        largest: ``blocks`` magnitudes.
        divisor: One over the tensor scale, for each block or for all.
        target: What the largest becomes.
        rounding: Of the scale.
    """
    return E4M3FN.round(largest / target * divisor, rounding)


def on_grid(
    blocks: Tensor,
    steps: Tensor,
    uniform: Tensor,
    rounding: Rounding = "nearest_even",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Round blocks whose grids and steps are known, without a branch: E2M1 is uniform below 2 and INT4 everywhere.

    Args:
        blocks: A ``blocks x size`` float32 or float64 tensor.
        steps: What one unit of each block's grid stands for; a block with step 0 becomes zeros.
        uniform: Whether each block is on the uniform grid.
        rounding: One of ``Rounding``.
        generator: Draws for ``stochastic``.

    Returns:
        A ``blocks x size`` tensor of elements, in units of the steps.
    """
    limit = torch.where(uniform, UNIFORM.target, FLOATING.target).to(blocks.dtype)[:, None]
    scaled = torch.minimum(torch.maximum(blocks / _divisible(steps)[:, None], -limit), limit)
    integer, mask, one = _BITS[scaled.dtype]
    power = (scaled.view(integer) & mask).clamp_(min=one).view(scaled.dtype)
    ulp = torch.where(uniform[:, None], 1.0, power.mul_(0.5))
    return to_integer(scaled / ulp, rounding, generator).mul_(ulp)


def _best(
    blocks: Tensor, largest: Tensor, divisor: Tensor, scheme: Scheme, rounding: Rounding, dequantize: bool
) -> Chosen:
    """The candidate with the smallest squared error for each block."""
    scales = [block_scales(largest, divisor, candidate.target) for candidate in scheme.candidates]
    steps = [scale / divisor for scale in scales]
    elements = torch.empty_like(blocks)
    errors = [torch.empty_like(largest) for _ in scheme.candidates]
    scratch = blocks.new_empty(2 + len(steps), *blocks[next(pieces(blocks), slice(0))].shape)
    took_last = torch.ones_like(largest, dtype=torch.bool)
    for part in pieces(blocks):
        size = part.stop - part.start
        scaled, work, *rounded = (space[:size] for space in scratch)
        for candidate, step, error, result in zip(scheme.candidates, steps, errors, rounded, strict=True):
            torch.div(blocks[part], _divisible(step[part])[:, None], out=scaled)
            _round_into(result, scaled, work, candidate, rounding)
            if len(steps) > 1:
                torch.linalg.vecdot(scaled.sub_(result), scaled, out=error[part])
                error[part].mul_(step[part]).mul_(step[part])
        if len(steps) > 1:
            torch.le(errors[1][part], errors[0][part], out=took_last[part])
        _blend(elements[part], rounded, [step[part] for step in steps], took_last[part], dequantize)
    chosen = Chosen(elements, scales[0], took_last)
    if len(steps) > 1:
        _settle(chosen, blocks, largest, steps, errors, scheme, rounding, dequantize)
        chosen = attrs.evolve(chosen, scales=torch.where(took_last, scales[1], scales[0]))
    return chosen


def _round_into(
    result: Tensor, scaled: Tensor, work: Tensor, candidate: Candidate, rounding: Rounding
) -> None:
    """Round scaled blocks to a candidate's grid, in place for the rounding that all use."""
    element = candidate.element
    if rounding != "nearest_even":
        result.copy_(element.round(scaled, rounding))
        return
    if candidate.uniform:
        torch.round(scaled, out=result).clamp_(-element.max, element.max)
        return
    # Adding 1.5 x 2^23 ulp leaves no room for anything behind the ulp: the adder itself rounds to nearest even.
    integer, mask, one = _BITS[scaled.dtype]
    torch.clamp(scaled, -element.max, element.max, out=result)
    power = torch.bitwise_and(result.view(integer), mask, out=work.view(integer)).clamp_(min=one)
    anchor = power.view(scaled.dtype).mul_(0.75 / torch.finfo(scaled.dtype).eps)
    result.add_(anchor).sub_(anchor)


def _blend(
    out: Tensor, rounded: list[Tensor], steps: list[Tensor], took_last: Tensor, dequantize: bool
) -> None:
    """Take each block from its candidate: times its step or zero, which is faster than a masked copy."""
    factors = steps if dequantize else [torch.ones_like(step) for step in steps]
    if len(rounded) == 1:
        torch.mul(rounded[0], factors[0][:, None], out=out)
        return
    torch.mul(rounded[0], (factors[0] * ~took_last)[:, None], out=out)
    out.addcmul_(rounded[1], (factors[1] * took_last)[:, None])


def _settle(
    chosen: Chosen,
    blocks: Tensor,
    largest: Tensor,
    steps: list[Tensor],
    errors: list[Tensor],
    scheme: Scheme,
    rounding: Rounding,
    dequantize: bool,
) -> None:
    """Decide again, in float64, where two errors are as near as the rounding of their sums, or a scale is zero."""
    near = (errors[0] - errors[1]).abs_() < 1e-4 * (errors[0] + errors[1]) + 1e-9 * largest.square()
    near |= (steps[0] == 0) | (steps[1] == 0)
    rows = (near & (largest > 0)).nonzero().squeeze(1)
    if not len(rows):
        return
    few, exact, results = blocks[rows], [], []
    for candidate, step in zip(scheme.candidates, steps, strict=True):
        numbers = candidate.element.round(few / _divisible(step[rows])[:, None], rounding)
        dequantized = numbers * step[rows, None]
        exact.append((dequantized.double() - few.double()).square().sum(-1))
        results.append(dequantized if dequantize else numbers)
    last = exact[1] <= exact[0]
    chosen.last[rows] = last
    chosen.elements[rows] = torch.where(last[:, None], results[1], results[0])


def _divisible(steps: Tensor) -> Tensor:
    """Steps by which nothing becomes NaN: what is divided by infinity is zero, as a block with scale 0 is."""
    return steps.masked_fill(steps == 0, torch.inf)


# Integer view, bits of the exponent, and the bits of 1.0: in E2M1 everything below 2 has the same neighbours' distance.
_BITS = {
    torch.float32: (torch.int32, 0x7F800000, 0x3F800000),
    torch.float64: (torch.int64, 0x7FF0000000000000, 0x3FF0000000000000),
}
