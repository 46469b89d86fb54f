"""A figure of uncertainty: known and strange rows, and its two parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from separata import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(known: pd.DataFrame, strange: pd.DataFrame) -> Figure:
    """Epistemic uncertainty of both as histograms, and between against within advocates.

    Args:
        known: ``predict_uncertainty`` of rows like those of training.
        strange: The same of others.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(10, 4, dist="separata-modex")
    histogram, parts = figure.subplots(1, 2)
    both = pd.concat([known, strange])["epistemic"]
    bins = np.linspace(0, float(both.max()) or 1.0, 30)
    for name, frame in (("known", known), ("strange", strange)):
        histogram.hist(frame["epistemic"], bins=bins, density=True, alpha=0.6, label=name)
        parts.scatter(frame["inter"], frame["intra"], s=8, alpha=0.6, label=name)
    histogram.set(title="Epistemic uncertainty", xlabel="sum of variances", ylabel="density")
    parts.set(title="Its two parts", xlabel="between advocates", ylabel="within advocates")
    for axes in (histogram, parts):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    return figure


def save(known: pd.DataFrame, strange: pd.DataFrame, path: Path) -> None:
    """Write the figure in the format of the path's suffix."""
    figures.save(compare(known, strange), path)
