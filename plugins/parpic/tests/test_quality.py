"""Directed modularity against networkx, and the flow between parts."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from separata_parpic import Digraph, block_flow, directed_modularity


def test_modularity_is_that_of_networkx() -> None:
    graph = nx.gnp_random_graph(30, 0.2, seed=3, directed=True)
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 1 + number % 4
    labels = np.arange(30) % 3
    parts = [{vertex for vertex in graph if labels[vertex] == part} for part in range(3)]
    expected = nx.community.modularity(graph, parts, weight="weight")
    assert directed_modularity(graph, labels) == pytest.approx(expected, abs=1e-12)


def test_one_part_has_no_modularity() -> None:
    assert directed_modularity(np.ones((4, 4)) - np.eye(4), np.zeros(4)) == pytest.approx(0)


def test_the_flow_adds_up_weights_between_parts() -> None:
    graph = Digraph.from_edges(["a", "a", "b", "c"], ["b", "c", "c", "a"], [1.0, 2.0, 4.0, 8.0])
    flow, names = block_flow(graph, ["x", "x", "y"])
    assert names.tolist() == ["x", "y"]
    assert flow.tolist() == [[1, 6], [8, 0]]
