"""Figures of a clustering: when diffusion stops, where vertices end up, and how the clusters are linked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from separata import figures

from .clustering import ISOLATED, ParPIC
from .quality import block_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def summary(model: ParPIC, graph: Any) -> Figure:
    """Entropy with its knee, the two main directions of the embedding, and the share of weight between clusters.

    Args:
        model: A fitted clustering.
        graph: What it was fitted on.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(13, 4, dist="separata-parpic")
    entropy, embedding, flow = figure.subplots(1, 3)
    _entropy(entropy, model)
    _embedding(embedding, model)
    _flow(figure, flow, model, graph)
    return figure


def save(model: ParPIC, graph: Any, path: Path) -> None:
    """Write the figure in the format of the path's suffix."""
    figures.save(summary(model, graph), path)


def _entropy(axes: Any, model: ParPIC) -> None:
    curve = model.entropy_curve_
    if len(curve):
        axes.plot(np.arange(1, len(curve) + 1), curve, marker="o", markersize=3)
    axes.axvline(
        model.diffusion_time_, linestyle="--", color="0.4", label=f"diffusion time {model.diffusion_time_}"
    )
    axes.set(title="Entropy of the walks", xlabel="steps", ylabel="nats")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def _embedding(axes: Any, model: ParPIC) -> None:
    kept = model.labels_ != ISOLATED
    points = PCA(2).fit_transform(model.embedding_[kept]) if model.embedding_.shape[1] > 1 else None
    if points is None:
        axes.text(0.5, 0.5, "one component only", ha="center")
        return
    axes.scatter(*points.T, c=model.labels_[kept], cmap="tab10" if model.n_clusters <= 10 else "tab20", s=8)
    axes.set(title="Embedding, two main directions", xticks=[], yticks=[])


def _flow(figure: Figure, axes: Any, model: ParPIC, graph: Any) -> None:
    weights, names = block_flow(graph, model.labels_)
    linked = names != ISOLATED
    weights, names = weights[linked][:, linked], names[linked]
    image = axes.imshow(weights / weights.sum(), cmap="Blues", vmin=0)
    axes.set(title="Share of weight from cluster to cluster", xlabel="to", ylabel="from")
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=axes, fraction=0.046)
