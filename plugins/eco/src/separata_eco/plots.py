"""Figures: how alike successive rounding errors are, and how a training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from separata import figures

INCHES_A_ROW = 0.22


def drift(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw each weight's ratio of norms and cosine; ECO takes both for 1.

    Args:
        rows: ``ErrorDrift.rows_``.
        file: Where to write.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(9, 1.5 + INCHES_A_ROW * len(rows), dist="separata-eco")
    axes = figure.subplots()
    places = range(len(rows))
    for kind, marker in (("norm_ratio", "o"), ("cosine", "s")):
        axes.plot([row[kind] for row in rows], places, marker, label=kind.replace("_", " "))
    axes.axvline(1, color="0.6", linewidth=1)
    axes.axvline(0, color="0.6", linewidth=1)
    axes.set_yticks(places, [row["weight"] for row in rows])
    axes.invert_yaxis()
    axes.set(title="An error beside the one before; at 1 they are alike", xlabel="mean over the steps")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figures.save(figure, file)


def losses(rows: Sequence[Mapping[str, Any]], held_out: float, file: Path) -> None:
    """Draw the loss of each step, and the held-out loss at the end.

    Args:
        rows: Mappings with ``step`` and ``loss``, nats a token.
        held_out: Nats a token.
        file: Where to write.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(8, 4, dist="separata-eco")
    axes = figure.subplots()
    axes.plot([int(row["step"]) for row in rows], [float(row["loss"]) for row in rows], label="training")
    axes.axhline(held_out, color="C1", linestyle="--", label="held out, after the last step")
    axes.set(title="Cross-entropy", xlabel="step", ylabel="nats a token")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figures.save(figure, file)
