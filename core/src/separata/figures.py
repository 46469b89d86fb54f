"""Figures that plugins draw: one look, one way to write them, one answer where matplotlib is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InvalidConfig, PackageMissing
from .files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150


def figure(width: float, height: float, *, dist: str) -> Figure:
    """An empty figure, bound to no window and to none of pyplot's global state.

    Args:
        width: In inches.
        height: In inches.
        dist: The distribution whose extra ``plot`` brings matplotlib.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PackageMissing.extra("matplotlib", f"{dist}[plot]") from error
    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Figure, path: Path | str) -> None:
    """Write a figure, whole or not at all.

    Args:
        drawn: The figure.
        path: A file whose suffix says the format: ``.png``, ``.pdf``, ``.svg``, ...

    Raises:
        InvalidConfig: If there is no such format.
        WriteFailed: If the file can't be written.
    """
    path = Path(path)
    formats = drawn.canvas.get_supported_filetypes()
    if path.suffix[1:] not in formats:
        raise InvalidConfig(f"{path} names no format of figures", "end it in .png, .pdf or .svg")
    with atomic_file(path) as partial:
        drawn.savefig(partial, dpi=DOTS_PER_INCH)
