"""Directed graphs from whatever holds one: matrices, networkx, tables of edges, and files."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Self

import attrs
import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from separata.errors import PackageMissing

from ._plugin import DATA
from .errors import GraphNotice, InvalidGraph, UnreadableGraph
from .graph_tool import read_graph_tool
from .operators import csr

SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".parquet", ".mtx", ".graphml", ".npz", ".gt")
NAMED = {name: DATA / f"{name}.gt.gz" for name in ("polblogs", "serengeti-foodweb")}
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")


@attrs.frozen(eq=False)
class Digraph:
    """A weighted directed graph with named vertices.

    Args:
        adjacency: Weights from row to column, float64 sparse CSR, shape (n, n); finite and not negative.
        names: The name of each vertex, n of them.
        labels: A known class of each vertex by name of the attribute, each of shape (n,), if the file had any.
    """

    adjacency: sp.csr_array
    names: Sequence[Hashable]
    labels: dict[str, NDArray[Any]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, graph: Any) -> Self:
        """Take a matrix (dense or scipy sparse), a networkx graph, or a ``Digraph`` as it is.

        Raises:
            InvalidGraph: If the matrix is not square or empty, or a weight is negative, infinite or not a number.
        """
        if isinstance(graph, Digraph):
            return cls(graph.adjacency, graph.names, graph.labels)
        if isinstance(graph, nx.Graph):
            if not len(graph):
                raise InvalidGraph("the graph has no vertices", "give at least two")
            return cls(_checked(nx.to_scipy_sparse_array(graph, dtype=np.float64)), list(graph))
        adjacency = _checked(graph)
        return cls(adjacency, range(adjacency.shape[0]))

    @classmethod
    def from_edges(cls, sources: Sequence[Any], targets: Sequence[Any], weights: Any = None) -> Self:
        """Build from one source, target and weight an edge; an edge given twice has the sum of the weights.

        Names are sorted where they can be compared, else kept in their order of appearance.
        """
        codes, names = pd.factorize(np.concatenate([np.asarray(sources), np.asarray(targets)]), sort=True)
        values = np.ones(len(sources)) if weights is None else np.asarray(weights, np.float64)
        _check_weights(values)
        half = len(sources)
        matrix = sp.coo_array((values, (codes[:half], codes[half:])), shape=(len(names), len(names)))
        return cls(_checked(matrix), names.tolist())

    def __len__(self) -> int:
        return int(self.adjacency.shape[0])

    def tensor(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> Tensor:
        """The adjacency as a sparse CSR tensor, shape (n, n)."""
        found = self.adjacency.tocoo()
        rows, columns = (torch.as_tensor(axis, dtype=torch.int64) for axis in found.coords)
        return csr(rows, columns, torch.as_tensor(found.data, dtype=dtype), len(self)).to(device)

    def restricted(self, kept: NDArray[np.bool_]) -> Digraph:
        """The graph of some of its vertices."""
        names = [name for name, stays in zip(self.names, kept, strict=True) if stays]
        labels = {name: values[kept] for name, values in self.labels.items()}
        return Digraph(self.adjacency[kept][:, kept], names, labels)


def read_graph(
    path: str | Path, *, source: str | None = None, target: str | None = None, weight: str | None = None
) -> Digraph:
    """Read a graph from a file.

    Args:
        path: A file, or the name of a real graph that comes with the plugin, ``polblogs`` or ``serengeti-foodweb``.
            Edges as ``.csv``, ``.tsv``, ``.parquet``, or ``.txt``/``.edges`` (columns parted by blanks, no header,
            ``#`` starts a comment); MatrixMarket ``.mtx``; ``.graphml``; scipy's ``.npz``; graph-tool's ``.gt``. Text
            may be compressed.
        source: Column of the sources; ``source`` or the first column if not given.
        target: Column of the targets; ``target`` or the second column if not given.
        weight: Column or edge attribute of the weights; ``weight`` if there is one, else each edge counts 1.

    Raises:
        UnreadableGraph: If the file is missing, of another format, or a row makes no sense.
    """
    path = NAMED[str(path)] if str(path) in NAMED else Path(path).expanduser()
    if not path.is_file():
        raise UnreadableGraph(
            f"there is no file {path}", f"name a file ({' '.join(SUFFIXES)}), or one of {', '.join(NAMED)}"
        )
    suffix = next((part for part in reversed(path.suffixes) if part not in COMPRESSED), "")
    if suffix not in SUFFIXES:
        raise UnreadableGraph(f"{path} is no graph that can be read", f"give one of {' '.join(SUFFIXES)}")
    try:
        if suffix == ".mtx":
            from scipy.io import mmread

            return Digraph.of(sp.csr_array(mmread(path)))
        if suffix == ".npz":
            return Digraph.of(sp.load_npz(path))
        if suffix == ".graphml":
            return _from_networkx(nx.read_graphml(path), weight)
        if suffix == ".gt":
            return _from_graph_tool(path, weight)
        return _from_table(path, _table(path, suffix), source, target, weight)
    except (InvalidGraph, UnreadableGraph, PackageMissing):
        raise
    except (ValueError, OSError, EOFError, LookupError, SyntaxError) as error:
        detail = " ".join(str(error).split())
        raise UnreadableGraph(
            f"{path} can't be read: {detail}", "check that its name fits its format"
        ) from error


def read_labels(path: str | Path) -> pd.Series[Any]:
    """Labels from a CSV file by vertex: the first column names it, the second its label.

    Raises:
        UnreadableGraph: If the file has no two columns.
    """
    try:
        table = pd.read_csv(path, dtype=str)
    except (OSError, ValueError) as error:
        detail = " ".join(str(error).split())
        raise UnreadableGraph(f"{path} can't be read: {detail}", "give a CSV of vertex and label") from error
    if table.shape[1] < 2:
        raise UnreadableGraph(f"{path} has one column", "give a CSV of vertex and label")
    return table.set_index(table.columns[0]).iloc[:, 0]


def _table(path: Path, suffix: str) -> pd.DataFrame:
    if suffix == ".parquet":
        try:
            return pd.read_parquet(path)
        except ImportError as error:
            raise PackageMissing.extra("pyarrow", "separata-parpic[parquet]") from error
    if suffix in (".txt", ".edges"):
        return pd.read_csv(path, sep=r"\s+", comment="#", header=None).rename(columns=str)
    return pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")


def _from_table(
    path: Path, table: pd.DataFrame, source: str | None, target: str | None, weight: str | None
) -> Digraph:
    columns = list(map(str, table.columns))
    table.columns = pd.Index(columns)
    if len(columns) < 2 or table.empty:
        raise UnreadableGraph(f"{path} has no rows of a source and a target", "give one edge a row")
    source = source or ("source" if "source" in columns else columns[0])
    target = target or ("target" if "target" in columns else columns[1])
    third = columns[2] if len(columns) > 2 and columns[0] == "0" else None
    weight = weight or ("weight" if "weight" in columns else third)
    for name in (source, target, weight):
        if name is not None and name not in columns:
            raise UnreadableGraph(f"{path} has no column {name!r}", f"its columns are {', '.join(columns)}")
    missing = table[[source, target]].isna().any(axis=1)
    if missing.any():
        row = int(np.flatnonzero(missing)[0]) + 1
        raise UnreadableGraph(f"{path}, edge {row}, lacks its source or target", "fill it, or leave it out")
    weights = pd.to_numeric(table[weight]).to_numpy() if weight else None
    return Digraph.from_edges(table[source].tolist(), table[target].tolist(), weights)


def _from_networkx(graph: Any, weight: str | None) -> Digraph:
    if not len(graph):
        raise InvalidGraph("the graph has no vertices", "give at least two")
    if weight and not any(weight in data for _, _, data in graph.edges(data=True)):
        raise UnreadableGraph(f"no edge has an attribute {weight!r}", "name one that is there, or none")
    matrix = nx.to_scipy_sparse_array(graph, weight=weight or "weight", dtype=np.float64)
    return Digraph(_checked(matrix), list(graph))


def _from_graph_tool(path: Path, weight: str | None) -> Digraph:
    found = read_graph_tool(path)
    if weight and weight not in found.edge_properties:
        raise UnreadableGraph(
            f"{path} has no edge property {weight!r}", f"it has {', '.join(found.edge_properties) or 'none'}"
        )
    values = found.edge_properties[weight] if weight else np.ones(len(found.edges))
    rows, columns = np.asarray(found.edges, np.int64).reshape(-1, 2).T
    if not found.directed:
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        values = np.concatenate([values, values])
    matrix = sp.coo_array((np.asarray(values, np.float64), (rows, columns)), shape=(found.size, found.size))
    names = found.vertex_properties.get("label", range(found.size))
    labels = {name: np.asarray(values) for name, values in found.vertex_properties.items() if name != "label"}
    return Digraph(_checked(matrix), list(names), labels)


def _checked(matrix: Any) -> sp.csr_array:
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidGraph(
            f"the adjacency has shape {matrix.shape}", "give a square matrix, or affinity='knn' for features"
        )
    found = sp.csr_array(matrix, dtype=np.float64, copy=True)
    found.sum_duplicates()
    _check_weights(found.data)
    found.eliminate_zeros()
    if not found.nnz:
        raise InvalidGraph("the graph has no edges", "give at least one weight above 0")
    # Libraries that take the matrix further, scikit-learn among them, ask for 32-bit indices.
    if max(found.nnz, found.shape[0]) < 2**31:
        found.indices, found.indptr = found.indices.astype(np.int32), found.indptr.astype(np.int32)
    loops = int((found.diagonal() > 0).sum())
    if loops:
        warnings.warn(f"{loops} self-loops are kept", GraphNotice, stacklevel=3)
    return found


def _check_weights(values: NDArray[np.float64]) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        raise InvalidGraph(f"{int(bad.sum())} weights are NaN or infinite", "leave those edges out")
    if (values < 0).any():
        raise InvalidGraph(
            f"{int((values < 0).sum())} weights are negative, the least {values.min():g}",
            "a random walk needs weights of 0 or more",
        )
