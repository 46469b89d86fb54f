"""ParPIC: finds blocks that direction alone tells apart, in scikit-learn's habits."""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.utils.estimator_checks import check_estimator

from separata_parpic import Digraph, ParPIC, errors, generators, vertex_measure


def agreement(truth: Any, labels: Any) -> float:
    return float(adjusted_mutual_info_score(truth, labels))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": "full"},
        {
            "n_components": "sqrt",
            "n_probes": "sqrt",
            "standardize": False,
            "normalize": False,
            "dangling": "uniform",
        },
        {"measure": "harmonic"},
        {"time": 4},
        {"gamma": 0.85},
    ],
)
def test_a_chain_of_blocks_is_found(options: dict[str, Any], chain: tuple[Digraph, Any]) -> None:
    graph, truth = chain
    assert agreement(truth, ParPIC(3, random_state=0, **options).fit(graph).labels_) > 0.9


def test_the_whole_embedding_and_random_signals_tell_vertices_apart_alike(chain: tuple[Digraph, Any]) -> None:
    graph, _ = chain
    found = [
        ParPIC(3, n_components=count, time=3, normalize=False, random_state=0).fit(graph).embedding_
        for count in ("full", 900)
    ]
    distances = [np.linalg.norm(rows[:300] - rows[600:], axis=1) / np.sqrt(rows.shape[1]) for rows in found]
    assert distances[1].mean() == pytest.approx(distances[0].mean(), rel=0.1)


def test_two_parts_are_told_apart_exactly() -> None:
    block, _ = generators.block_model((40,), [[0.3]], np.random.default_rng(1))
    dense = block.adjacency.toarray()
    both = np.block([[dense, np.zeros_like(dense)], [np.zeros_like(dense), dense]])
    labels = ParPIC(2, random_state=0).fit_predict(both)
    assert agreement(np.repeat([0, 1], 40), labels) == 1


def test_what_it_learned_has_these_shapes(chain: tuple[Digraph, Any]) -> None:
    model = ParPIC(3, random_state=0).fit(chain[0])
    assert model.labels_.shape == (900,)
    assert model.embedding_.shape == (900, 100)
    assert model.stationary_.sum() == pytest.approx(1)
    assert model.entropy_curve_.max() <= np.log(900)
    assert 1 <= model.diffusion_time_ <= len(model.entropy_curve_) + 1


def test_the_seed_decides(chain: tuple[Digraph, Any]) -> None:
    one, same, other = (ParPIC(3, random_state=seed).fit(chain[0]).embedding_ for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_vertices_without_edges_are_labelled_apart() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "d")])
    graph.add_node("alone")
    with pytest.warns(errors.GraphNotice, match="1 vertices without edges"):
        model = ParPIC(2, random_state=0).fit(graph)
    assert dict(zip(model.names_, model.labels_, strict=True))["alone"] == -1
    assert not model.embedding_[-1].any()


@pytest.mark.parametrize(
    ("graph", "clusters", "notice"),
    [
        (nx.path_graph(6), 2, "undirected"),
        (nx.DiGraph([(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)]), 2, "3 weakly connected parts"),
    ],
)
def test_what_changes_the_meaning_of_clusters_is_told(graph: Any, clusters: int, notice: str) -> None:
    with pytest.warns(errors.GraphNotice, match=notice):
        ParPIC(clusters, random_state=0).fit(graph)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 901}, "n_clusters is 901"),
        ({"n_clusters": 0}, "n_clusters is 0"),
        ({"n_clusters": None}, "see sweep"),
        ({"gamma": 2.0}, "gamma is 2.0"),
        ({"measure": "pagerank"}, "measure is 'pagerank'"),
        ({"measure": np.ones(3)}, r"measure has shape \(3,\) for 900"),
        ({"measure": -np.ones(900)}, "measure has shape"),
        ({"time": "soon"}, "time is 'soon'"),
        ({"time": 0}, "time is 0"),
        ({"n_components": "many"}, "n_components is 'many'"),
        ({"n_probes": 0}, "n_probes is 0"),
        ({"affinity": "rbf"}, "affinity is 'rbf'"),
        ({"dangling": "teleport"}, "dangling is 'teleport'"),
        ({"normalize": "rows"}, "normalize is 'rows'"),
    ],
)
def test_settings_out_of_range_are_refused(
    options: dict[str, Any], message: str, chain: tuple[Digraph, Any]
) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        ParPIC(**{"n_clusters": 3, **options}).fit(chain[0])


def test_a_vector_may_be_the_measure(chain: tuple[Digraph, Any]) -> None:
    graph, truth = chain
    degrees = graph.adjacency.sum(1) / graph.adjacency.sum() + graph.adjacency.sum(0) / graph.adjacency.sum()
    given = ParPIC(3, measure=degrees, random_state=0).fit(graph)
    assert np.array_equal(given.labels_, ParPIC(3, gamma=0.5, random_state=0).fit(graph).labels_)
    assert agreement(truth, given.labels_) > 0.9


def test_every_named_measure_is_that_vector(chain: tuple[Digraph, Any]) -> None:
    graph, _ = chain
    vector = vertex_measure(graph.tensor(), "walk").numpy()
    named, given = (ParPIC(3, measure=measure, random_state=0).fit(graph) for measure in ("walk", vector))
    np.testing.assert_allclose(named.stationary_, given.stationary_, rtol=1e-12)


def test_features_are_linked_to_their_neighbours() -> None:
    features, truth = load_iris(return_X_y=True)
    assert agreement(truth, ParPIC(3, affinity="knn", random_state=0).fit_predict(features)) > 0.6


def test_it_keeps_scikit_learns_contract() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.GraphNotice)
        check_estimator(ParPIC(2, affinity="knn", n_init=1, random_state=0))
