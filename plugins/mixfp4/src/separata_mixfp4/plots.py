"""Figures of a report: where the crest factors lie, and what each method reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from separata import figures

from .report import CrestFactorReport
from .theory import crossover, decibels, floating_error, uniform_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8  # tensors that can be told apart by colour


def crest_figure(report: CrestFactorReport) -> Figure:
    """Histograms of the crest factor over the theory's two curves, and the QSNR of each method.

    Args:
        report: A fitted report; of many tensors the histograms show some, evenly spread.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(11, 4.6, dist="separata-mixfp4")
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    names = list(report.histograms_)
    shown = [
        names[place] for place in np.linspace(0, len(names) - 1, min(MOST, len(names))).round().astype(int)
    ]
    centres = (report.edges_[1:] + report.edges_[:-1]) / 2
    for name in shown:
        left.plot(centres, 100 * report.histograms_[name], label=name, linewidth=1.2)
    border = crossover(report.group)
    left.axvline(border, color="black", linestyle="--", linewidth=1)
    left.set_xlabel(f"crest factor of a block; the uniform grid is better below {border:.2f}")
    left.set_ylabel("share of blocks (%)")
    # Room for the legends above the curves.
    left.set_ylim(0, 135 * max(shares.max() for shares in report.histograms_.values()) or 1)
    left.legend(frameon=False, fontsize=7, loc="upper left")
    theory: Any = left.twinx()
    theory.set_ylim(14, 29)
    at = np.linspace(1.2, report.group**0.5, 200)
    for error, label, style in ((uniform_error, "uniform", ":"), (floating_error, "E2M1", "-.")):
        curve = [decibels(error(value, report.group)) for value in at]
        theory.plot(at, curve, color="grey", linestyle=style, label=f"{label}, theory")
    theory.set_ylabel("QSNR of a Gaussian block (dB)", color="grey")
    theory.legend(frameon=False, fontsize=7, loc="upper right")
    _rivals(right, report)
    return figure


def save(report: CrestFactorReport, path: Path) -> None:
    """Write the figure, whole or not at all.

    Args:
        report: A fitted report.
        path: A .png, .svg or .pdf file.
    """
    figures.save(crest_figure(report), path)


def _rivals(axes: Any, report: CrestFactorReport) -> None:
    """QSNR of each method over that of the first, one mark a tensor."""
    rows = [row for row in report.rows_ if all(row[method] is not None for method in report.methods)]
    base = "nvfp4" if "nvfp4" in report.methods else report.methods[0]
    for method in report.methods:
        if method != base:
            gains = [row[method] - row[base] for row in rows]
            axes.plot(gains, marker="o", markersize=4, linewidth=0, label=method)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_ylabel(f"QSNR above that of {base} (dB)")
    if len(rows) <= MOST:
        axes.set_xticks(
            range(len(rows)), [row["tensor"] for row in rows], rotation=30, ha="right", fontsize=7
        )
    else:
        axes.set_xlabel("tensor, in the order of the table")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
