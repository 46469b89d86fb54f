"""The figure of bias against variance: estimates with intervals over k, and how the variance grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from separata import figures

from .estimator import TPGEstimator

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def path(fitted: TPGEstimator) -> Figure:
    """Estimates with intervals over k, the chosen one marked, beside ``T se^2``.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(10, 4, dist="separata-tpg")
    left, right = figure.subplots(1, 2)
    table = fitted.path_
    spread = [table["estimate"] - table["low"], table["high"] - table["estimate"]]
    left.errorbar(table["k"], table["estimate"], yerr=spread, fmt="o", capsize=3)
    chosen = table[table["k"] == fitted.k_]
    left.plot(
        chosen["k"], chosen["estimate"], "o", markersize=11, fillstyle="none", label=f"chosen k = {fitted.k_}"
    )
    left.axhline(0, color="0.6", linewidth=1)
    left.set(
        title="Effect, less biased to the right", xlabel="k", ylabel=f"estimate, {fitted.level:.0%} interval"
    )
    left.legend(frameon=False)
    right.plot(table["k"], fitted.n_steps_ * table["std_error"] ** 2, marker="o")
    right.set(title="Variance, growing with k", xlabel="k", ylabel="T x squared standard error", yscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    return figure


def save(fitted: TPGEstimator, file: Path) -> None:
    """Write the figure in the format of the file's suffix."""
    figures.save(path(fitted), file)
