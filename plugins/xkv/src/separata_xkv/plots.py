"""Figures of a study of layers: heatmaps of similarity, and error against compression."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from separata import figures

from .analysis import Array, CrossLayerCKA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERROR_TICKS = [scale * digit for scale in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1) for digit in (1, 2, 5)] + [1.0]


def heatmaps(study: CrossLayerCKA) -> Figure:
    """Linear CKA and token-wise cosine of each pair of layers, for keys and values.

    Args:
        study: A fitted study.

    Returns:
        A figure of 2 x 2 heatmaps. CKA shares one scale from 0 to 1, cosine one from -1 to 1.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(9, 8, dist="separata-xkv")
    panels = [
        ("Linear CKA of the keys (before RoPE)", study.key_cka_, "viridis", 0.0),
        ("Linear CKA of the values", study.value_cka_, "viridis", 0.0),
        ("Cosine of one token's keys (before RoPE)", study.key_cosine_, "RdBu_r", -1.0),
        ("Cosine of one token's values", study.value_cosine_, "RdBu_r", -1.0),
    ]
    for place, (title, matrix, colours, lowest) in enumerate(panels, start=1):
        axes = figure.add_subplot(2, 2, place)
        image = axes.imshow(
            matrix, cmap=colours, vmin=lowest, vmax=1.0, origin="lower", interpolation="nearest"
        )
        neighbours = round(float(np.nanmean(np.diagonal(matrix, 1))), 2) if len(matrix) > 1 else 1.0
        # Adding zero turns a rounded -0.0 into 0.0.
        axes.set_title(f"{title}\nmean of adjacent layers {neighbours + 0.0:.2f}", fontsize=10)
        axes.set_xlabel("layer")
        axes.set_ylabel("layer")
        ticks = range(0, len(study.layers_), max(len(study.layers_) // 6, 1))
        labels = [str(study.layers_[tick]) for tick in ticks]
        axes.set_xticks(list(ticks), labels)
        axes.set_yticks(list(ticks), labels)
        figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    return figure


def rank_curves(study: CrossLayerCKA) -> Figure:
    """Relative squared error against the compression ratio, one curve for each number of layers in a group.

    Args:
        study: A fitted study.

    Returns:
        A figure of two panels, keys and values. At one ratio all curves cost the same bytes.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(10, 4.2, dist="separata-xkv")
    sides: list[tuple[str, Array]] = [
        ("Keys (before RoPE)", study.key_error_),
        ("Values", study.value_error_),
    ]
    for place, (title, errors) in enumerate(sides, start=1):
        axes = figure.add_subplot(1, 2, place)
        for size, curve in zip(study.windows, errors, strict=True):
            axes.plot(
                study.ratios, curve, marker="o", label="each layer alone" if size == 1 else f"{size} layers"
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(list(study.ratios), [f"{ratio:g}×" for ratio in study.ratios])
        inside = [tick for tick in ERROR_TICKS if errors.min() / 1.5 <= tick <= errors.max() * 1.5]
        axes.set_yticks(inside, [f"{100 * tick:g} %" for tick in inside])
        axes.minorticks_off()
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("compression (bytes of exact states over bytes of factors)")
        axes.set_ylabel("relative squared error")
        axes.grid(alpha=0.3, which="both")
        axes.legend(title=f"sharing a basis ({study.tokens_} tokens)", frameon=False)
    return figure


def save(study: CrossLayerCKA, folder: Path) -> list[Path]:
    """Write both figures as PNG.

    Args:
        study: A fitted study.
        folder: An existing folder.

    Returns:
        The files.
    """
    files = []
    for name, figure in (("similarity.png", heatmaps(study)), ("error.png", rank_curves(study))):
        figures.save(figure, folder / name)
        files.append(folder / name)
    return files
