"""Graphs from matrices, networkx and files of every format; and what is no graph."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from scipy.io import mmwrite

from separata_parpic import Digraph, errors, read_graph
from separata_parpic.graphs import read_labels

MATRIX = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]])
NAMES = ["ant", "bee", "cat"]
EDGES = [("ant", "bee", 2.0), ("bee", "cat", 1.0), ("cat", "ant", 0.5)]


def table(header: str = "source,target,weight") -> str:
    return "\n".join([header, *(",".join(map(str, edge)) for edge in EDGES)])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.coo_array, np.ndarray.tolist])
def test_matrices_of_every_kind_are_taken(make: Any) -> None:
    graph = Digraph.of(make(MATRIX))
    assert np.array_equal(graph.adjacency.toarray(), MATRIX)
    assert list(graph.names) == [0, 1, 2]


def test_a_networkx_graph_keeps_its_names_and_weights() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(EDGES)
    found = Digraph.of(graph)
    assert list(found.names) == NAMES
    assert np.array_equal(found.adjacency.toarray(), MATRIX)


def test_the_matrix_given_is_not_changed() -> None:
    matrix = sp.csr_array(MATRIX)
    matrix.data[0] = 0
    Digraph.of(matrix)
    assert matrix.nnz == 3


def test_an_edge_given_twice_has_the_sum_of_the_weights() -> None:
    graph = Digraph.from_edges(["a", "a"], ["b", "b"], [1.0, 2.0])
    assert graph.adjacency.toarray().tolist() == [[0, 3], [0, 0]]


def test_the_tensor_is_the_matrix() -> None:
    found = Digraph.of(MATRIX).tensor(dtype=torch.float32)
    assert found.layout == torch.sparse_csr
    assert np.array_equal(found.to_dense().numpy(), MATRIX)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (MATRIX[:2], r"shape \(2, 3\)"),
        (-MATRIX, "3 weights are negative"),
        (np.where(MATRIX > 0, np.nan, 0), "3 weights are NaN"),
        (np.where(MATRIX > 0, np.inf, 0), "3 weights are NaN or infinite"),
        (np.zeros((3, 3)), "no edges"),
        (nx.DiGraph(), "no vertices"),
    ],
)
def test_what_is_no_graph_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(errors.InvalidGraph, match=message):
        Digraph.of(matrix)


def test_self_loops_are_kept_with_a_notice() -> None:
    with pytest.warns(errors.GraphNotice, match="1 self-loops"):
        graph = Digraph.of(MATRIX + np.diag([1.0, 0, 0]))
    assert graph.adjacency[0, 0] == 1


def write(path: Path) -> None:
    suffix = path.name.partition(".")[2]
    frame = pd.DataFrame(EDGES, columns=["source", "target", "weight"])
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(EDGES)
    if suffix == "graphml":
        nx.write_graphml(graph, path)
    elif suffix == "mtx":
        mmwrite(path, sp.coo_matrix(MATRIX))
    elif suffix == "npz":
        sp.save_npz(path, sp.csr_matrix(MATRIX))
    elif suffix == "edges":
        path.write_text("# from to weight\n" + "\n".join(" ".join(map(str, edge)) for edge in EDGES))
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "edges", "mtx", "graphml", "npz"])
def test_each_format_gives_the_same_graph(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph.{suffix}"
    write(path)
    graph = read_graph(path)
    assert np.array_equal(graph.adjacency.toarray(), MATRIX)
    if suffix not in ("mtx", "npz"):
        assert list(graph.names) == NAMES


def test_parquet_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="an extra")
    pd.DataFrame(EDGES, columns=["source", "target", "weight"]).to_parquet(tmp_path / "graph.parquet")
    assert np.array_equal(read_graph(tmp_path / "graph.parquet").adjacency.toarray(), MATRIX)


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "trade.csv"
    path.write_text("value,buyer,seller\n2,bee,ant\n1,cat,bee\n0.5,ant,cat\n")
    graph = read_graph(path, source="seller", target="buyer", weight="value")
    assert np.array_equal(graph.adjacency.toarray(), MATRIX)


def test_an_integer_as_name_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("source,target\n7,10\n10,7\n")
    assert list(read_graph(path).names) == [7, 10]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("graph.csv", "source,target,weight\na,,1\n", "edge 1, lacks"),
        ("graph.csv", "source,target,weight\na,b,heavy\n", "can't be read"),
        ("graph.csv", "source,target,weight\na,b,-1\n", "negative"),
        ("graph.csv", "only\na\n", "no rows of a source and a target"),
        ("graph.csv", "", "can't be read"),
        ("graph.graphml", "no xml", "can't be read"),
        ("graph.mtx", "nothing", "can't be read"),
        ("graph.npz", "nothing", "can't be read"),
        ("graph.gt", "nothing at all", "no graph-tool file"),
        ("graph.docx", "", "no graph that can be read"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_graph(tmp_path / name)


def test_a_missing_file_and_a_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(errors.UnreadableGraph, match="there is no file"):
        read_graph(tmp_path / "graph.csv")
    (tmp_path / "graph.csv").write_text(table())
    with pytest.raises(
        errors.UnreadableGraph, match=r"no column 'to'\nits columns are source, target, weight"
    ):
        read_graph(tmp_path / "graph.csv", target="to")


def test_an_archive_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(table().encode())
    (tmp_path / "graph.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(errors.UnreadableGraph, match="can't be read"):
        read_graph(tmp_path / "graph.csv.gz")


def test_labels_are_read_by_vertex(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("vertex,cluster\nant,0\nbee,1\n")
    assert read_labels(tmp_path / "labels.csv").to_dict() == {"ant": "0", "bee": "1"}
