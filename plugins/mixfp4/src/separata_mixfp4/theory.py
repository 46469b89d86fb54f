"""Which grid suits a block, from its crest factor: the error that a Gaussian body gives on either (MixFP4, section 3).

The crest factor of a block is ``max|x| / RMS(x)``. Errors are mean squares over the block's own mean square. The
element that sets the scale is exact, which takes ``1/size`` of the noise away on the uniform grid, and the largest
element's energy on the floating one.
"""

from __future__ import annotations

import math
from functools import cache


def uniform_error(crest: float, size: int = 16) -> float:
    """Relative mean squared error on -7..7: noise of ``step^2 / 12`` on all elements but the largest.

    Args:
        crest: Crest factor, at least 1.
        size: Elements of a block.
    """
    return crest**2 * (1 - 1 / size) / (12 * 7**2)


def floating_error(crest: float, size: int = 16) -> float:
    """Relative mean squared error on E2M1: noise in proportion to energy, but even among the subnormals.

    Args:
        crest: Crest factor, at least 1.
        size: Elements of a block.
    """
    edge = crest / 6  # below it, in units of the RMS, the grid is uniform
    inside = math.erf(edge / math.sqrt(2))
    density = math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi)
    energy_outside = 1 - (inside - 2 * edge * density)
    return (energy_outside - crest**2 / size) / (24 * 4) + (0.5 / 6) ** 2 / 12 * crest**2 * inside


@cache
def crossover(size: int = 16) -> float:
    """The crest factor at which both grids are equally good; below it the uniform one wins (2.2243 for 16).

    Args:
        size: Elements of a block, at least 4.
    """
    low, high = 1.0, math.sqrt(size)
    for _ in range(60):
        middle = (low + high) / 2
        if uniform_error(middle, size) < floating_error(middle, size):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def decibels(relative_error: float) -> float:
    """Signal over quantisation noise (QSNR) of a relative mean squared error, in dB."""
    return math.inf if relative_error == 0 else -10 * math.log10(relative_error)
