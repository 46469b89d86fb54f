"""The number of clusters and the share of in-degrees, chosen without labels by directed modularity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
from sklearn.base import clone

from .clustering import ParPIC
from .graphs import Digraph
from .quality import directed_modularity

GAMMAS = (0.15, 0.25, 0.5, 0.85)


@attrs.frozen(eq=False)
class Sweep:
    """What a sweep found.

    Args:
        best: The fitted clustering of highest modularity.
        rows: ``gamma``, ``n_clusters``, ``diffusion_time`` and ``modularity`` of each setting, best first.
    """

    best: ParPIC
    rows: list[dict[str, float]]


def sweep(
    graph: Any, clusters: Iterable[int], gammas: Iterable[float] = GAMMAS, *, like: ParPIC | None = None
) -> Sweep:
    """Try each number of clusters with each share of in-degrees.

    Scores that compare distances in the embedding grow with the diffusion time, whatever the partition; directed
    modularity looks at the graph alone.

    Args:
        graph: A graph as ``Digraph.of`` takes it.
        clusters: Numbers of clusters.
        gammas: Shares of in-degrees.
        like: Its other parameters are used.
    """
    graph, like = Digraph.of(graph), like or ParPIC()
    numbers, found = list(clusters), []
    for gamma in gammas:
        for number in numbers:
            fitted = clone(like).set_params(n_clusters=number, gamma=gamma).fit(graph)
            found.append((directed_modularity(graph, fitted.labels_), fitted))
    found.sort(key=lambda pair: -pair[0])
    rows = [
        {
            "gamma": fitted.gamma,
            "n_clusters": fitted.n_clusters,
            "diffusion_time": fitted.diffusion_time_,
            "modularity": modularity,
        }
        for modularity, fitted in found
    ]
    return Sweep(found[0][1], rows)
