"""Algorithm 1 of MixFP4 once more, element by element, in Python's own numbers: slow, and plainly right."""

from __future__ import annotations

import math

import torch
from torch import Tensor

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
UNIFORM = tuple(map(float, range(8)))
# 7 bits of E4M3 without a sign: eight subnormals, then 8 to 15 eighths of each power of two; the last is NaN.
E4M3 = tuple(
    math.ldexp(mantissa + (8 if exponent else 0), max(exponent, 1) - 10)
    for exponent in range(16)
    for mantissa in range(8)
)[:-1]
CANDIDATES = {
    "mixfp4": (((E2M1, 6.0), (UNIFORM, 7.0)), 2688.0),
    "nvfp4": (((E2M1, 6.0),), 2688.0),
    "nvint4": (((UNIFORM, 7.0),), 2688.0),
    "fouroversix": (((E2M1, 4.0), (E2M1, 6.0)), 1536.0),
}


def nearest(value: float, grid: tuple[float, ...]) -> float:
    """The nearest number of a grid of magnitudes; of two the one with the even code.

    Args:
        value: Any finite number.
        grid: Magnitudes by code.
    """
    code = min(range(len(grid)), key=lambda code: (abs(grid[code] - abs(value)), code % 2))
    return math.copysign(grid[code], value)


def fake_quantize_reference(x: Tensor, *, method: str = "mixfp4", group: int = 16) -> Tensor:
    """What ``fake_quantize`` gives, in float64.

    Args:
        x: A ``... x K`` float64 tensor, K a multiple of ``group``.
        method: As for ``fake_quantize``.
        group: Elements of a block.
    """
    candidates, reach = CANDIDATES[method]
    top = max(map(abs, x.flatten().tolist()), default=0.0)
    # The tensor scale is stored in float32.
    divisor = torch.tensor(reach / top if top else 1.0, dtype=torch.float32).item()
    numbers: list[float] = []
    for block in x.reshape(-1, group).tolist():
        best: list[float] = []
        least = math.inf
        for grid, target in candidates:
            scale = nearest(max(map(abs, block)) / target * divisor, E4M3)
            step = scale / divisor
            result = [nearest(value / step, grid) * step if step else 0.0 for value in block]
            error = sum((a - b) ** 2 for a, b in zip(result, block, strict=True))
            if error <= least:
                best, least = result, error
        numbers += best
    return torch.tensor(numbers, dtype=torch.float64).view(x.shape)
