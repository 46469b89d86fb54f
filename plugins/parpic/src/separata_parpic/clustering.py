"""ParPIC: clusters of a directed graph from random signals diffused by a reversible operator."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from .embedding import embed
from .errors import GraphNotice, InvalidSetting
from .graphs import Digraph
from .measures import MEASURES, vertex_measure
from .operators import reversible_operator

ISOLATED = -1


class ParPIC(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster the vertices of a directed graph in time linear in its edges.

    Random signals are diffused by the operator ``P_nu``, in which direction lives on as a vertex measure, for as long
    as the knee of the entropy of its walks says; k-means then parts the vertices by what they have received. No
    eigenvector is computed, and the graph may be weakly connected.

    The paper's own setting is ``standardize=False, normalize=False, n_components="sqrt", n_probes="sqrt",
    dangling="uniform"``. Its rule of the square root, ``max(min(n, 100), sqrt n)``, costs ``edges * sqrt n`` on large
    graphs, where 100 do as well. Without ``standardize`` what all vertices share can drown what tells them apart.

    Args:
        n_clusters: Clusters to find.
        gamma: Share of in-degrees in the vertex measure, from 0 (the graph symmetrised) to 1.
        measure: A measure by name, see ``vertex_measure``, or a vector of shape (n,).
        time: Steps of the diffusion, or ``knee``.
        n_components: Random signals: a number, ``sqrt``, or ``full`` for each vertex's own indicator, n x n values.
        n_probes: Walks that estimate the entropy: a number, or ``sqrt``.
        affinity: ``precomputed`` for a graph, ``knn`` to link each row of features to its nearest neighbours.
        n_neighbors: Neighbours of each vertex with ``knn``.
        standardize: Centre, scale and weigh by the stationary law, in which the operator is self-adjoint: it takes
            away what all vertices share, and a few vertices that hang on by one edge can't rule the rest.
        normalize: Divide each vertex's signals by their norm, so that vertices of high and low degree in one cluster
            lie together; ``auto`` does it for graphs, not for ``knn``, whose degrees are alike.
        dangling: Where vertices without outgoing edges lead, see ``random_walk``.
        n_init: Starts of k-means.
        random_state: Seed of the signals, the walks' starts and k-means.
        device: Device of the diffusion.

    Attributes:
        labels_: Cluster of each vertex, -1 if it has no edges, shape (n,).
        embedding_: Diffused signals that k-means sees, float32, shape (n, components); zero for vertices without edges.
        diffusion_time_: Steps taken.
        entropy_curve_: Entropy after 1, 2, ... steps in nats, shape (steps,); empty if ``time`` was given.
        stationary_: Stationary law of the operator, shape (n,).
        names_: Name of each vertex.

    References:
        Debaussart-Joniec et al., Parametrized Power-Iteration Clustering for Directed Graphs, arXiv 2210.00310.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 0.5,
        measure: str | ArrayLike = "degree",
        time: str | int = "knee",
        n_components: str | int = 100,
        n_probes: str | int = 100,
        affinity: str = "precomputed",
        n_neighbors: int = 10,
        standardize: bool = True,
        normalize: bool | str = "auto",
        dangling: str = "self-loop",
        n_init: int = 10,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.measure = measure
        self.time = time
        self.n_components = n_components
        self.n_probes = n_probes
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.standardize = standardize
        self.normalize = normalize
        self.dangling = dangling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters.

        Args:
            X: A graph as ``Digraph.of`` takes it: a square matrix of weights from row to column (numpy or scipy
                sparse), a networkx graph, or a ``Digraph``. With ``affinity="knn"`` features, shape (n, d).
            y: Ignored.

        Raises:
            InvalidGraph: If that is no graph a random walk can be made of.
            InvalidSetting: If a parameter is out of range, or there are fewer vertices than clusters.
        """
        self._check_settings()
        graph = self._graph(X)
        linked = _linked(graph)
        kept = graph if linked.all() else graph.restricted(linked)
        self._check_graph(kept, len(graph))
        random = check_random_state(self.random_state)
        embedding, stationary = self._embed(kept, random, linked)
        clusters = KMeans(self.n_clusters, n_init=self.n_init, random_state=random).fit(
            embedding, sample_weight=stationary * len(stationary) if self.standardize else None
        )
        self.names_ = graph.names
        self.labels_ = _spread(clusters.labels_, linked, ISOLATED)
        self.embedding_ = _spread(embedding, linked, 0.0)
        self.stationary_ = _spread(stationary, linked, 0.0)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        return tags

    def _graph(self, X: Any) -> Digraph:
        if self.affinity == "precomputed":
            return Digraph.of(X)
        features = validate_data(self, X, accept_sparse="csr", ensure_min_samples=2)
        neighbours = min(self.n_neighbors, features.shape[0] - 1)
        return Digraph.of(kneighbors_graph(features, neighbours, mode="connectivity"))

    def _check_settings(self) -> None:
        for name, options in (
            ("affinity", ("precomputed", "knn")),
            ("dangling", ("self-loop", "uniform")),
            ("normalize", ("auto", True, False)),
        ):
            if getattr(self, name) not in options:
                raise InvalidSetting(
                    f"{name} is {getattr(self, name)!r}", f"it is one of {', '.join(map(str, options))}"
                )
        if isinstance(self.measure, str) and self.measure not in MEASURES:
            raise InvalidSetting(f"measure is {self.measure!r}", f"name one of {', '.join(MEASURES)}")
        named = {"time": ("knee",), "n_components": ("sqrt", "full"), "n_probes": ("sqrt",), "n_clusters": ()}
        for name, words in named.items():
            value = getattr(self, name)
            if value not in words and (isinstance(value, bool | str) or value is None or int(value) < 1):
                accepted = " or ".join([*map(repr, words), "a whole number of at least 1"])
                raise InvalidSetting(
                    f"{name} is {value!r}", f"give {accepted}; see sweep for the number of clusters"
                )

    def _check_graph(self, graph: Digraph, size: int) -> None:
        if len(graph) < size:
            _notice(f"{size - len(graph)} vertices without edges get the label {ISOLATED}")
        if len(graph) < self.n_clusters:
            raise InvalidSetting(
                f"n_clusters is {self.n_clusters}, with n_samples={len(graph)} vertices",
                "ask for fewer clusters",
            )
        if self.affinity == "precomputed" and abs(graph.adjacency - graph.adjacency.T).max() == 0:
            _notice("the graph is undirected: gamma has no effect")
        parts, _ = connected_components(graph.adjacency, directed=True, connection="weak")
        if parts > self.n_clusters:
            _notice(f"the graph has {parts} weakly connected parts, more than n_clusters={self.n_clusters}")

    def _embed(
        self, graph: Digraph, random: np.random.RandomState, linked: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        adjacency = graph.tensor(device=self.device)
        operator, stationary = reversible_operator(
            adjacency, self._mass(adjacency, linked), dangling=self.dangling
        )
        found = embed(
            operator,
            stationary,
            torch.Generator().manual_seed(int(random.randint(2**31 - 1))),
            time=self.time,
            n_components=self.n_components,
            n_probes=self.n_probes,
            standardize=self.standardize,
            normalize=self.affinity == "precomputed" if self.normalize == "auto" else bool(self.normalize),
        )
        self.diffusion_time_, self.entropy_curve_ = found.steps, found.curve.numpy()
        return found.signals.cpu().numpy(), stationary.cpu().numpy()

    def _mass(self, adjacency: Tensor, linked: NDArray[np.bool_]) -> Tensor:
        if isinstance(self.measure, str):
            return vertex_measure(adjacency, self.measure, gamma=self.gamma)
        given = np.asarray(self.measure, np.float64)
        if (
            given.shape != linked.shape
            or not np.isfinite(given).all()
            or (given < 0).any()
            or not given.sum()
        ):
            raise InvalidSetting(
                f"measure has shape {given.shape} for {len(linked)} vertices",
                "give one finite weight of 0 or more for each vertex",
            )
        return torch.as_tensor(given[linked] / given[linked].sum(), device=adjacency.device)


def _linked(graph: Digraph) -> NDArray[np.bool_]:
    degrees = graph.adjacency.sum(1) + graph.adjacency.sum(0)
    return np.asarray(degrees > 0)


def _spread(values: NDArray[Any], linked: NDArray[np.bool_], missing: float) -> NDArray[Any]:
    whole = np.full((len(linked), *values.shape[1:]), missing, dtype=values.dtype)
    whole[linked] = values
    return whole


def _notice(text: str) -> None:
    warnings.warn(text, GraphNotice, stacklevel=4)
