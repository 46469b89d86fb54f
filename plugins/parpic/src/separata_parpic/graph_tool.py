"""graph-tool's binary files, read without graph-tool (https://graph-tool.skewed.de/static/doc/gt_format.html)."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import attrs

from .errors import UnreadableGraph

MAGIC = b"\xe2\x9b\xbe gt"
# Codes of value types that are one number: struct's letter for each.
SCALARS = {0: "B", 1: "h", 2: "i", 3: "q", 4: "d"}
STRING, FIRST_VECTOR, STRING_VECTOR = 6, 7, 13
OWNERS = ("graph", "vertex", "edge")


@attrs.frozen
class GraphToolFile:
    """What a file holds.

    Args:
        directed: Whether edges have a direction.
        size: Vertices.
        edges: Source and target of each edge.
        vertex_properties: Values of each vertex property, one a vertex.
        edge_properties: Values of each edge property, one an edge.
    """

    directed: bool
    size: int
    edges: list[tuple[int, int]]
    vertex_properties: dict[str, list[Any]]
    edge_properties: dict[str, list[Any]]


@attrs.define
class _Reader:
    data: bytes
    order: str
    offset: int

    def unpack(self, letters: str) -> tuple[Any, ...]:
        layout = struct.Struct(self.order + letters)
        values = layout.unpack_from(self.data, self.offset)
        self.offset += layout.size
        return values

    def number(self, letter: str = "Q") -> int:
        return int(self.unpack(letter)[0])

    def text(self) -> str:
        length = self.number()
        self.offset += length
        return self.data[self.offset - length : self.offset].decode("utf-8", "replace")

    def values(self, code: int, count: int) -> list[Any]:
        if code in SCALARS:
            return list(self.unpack(f"{count}{SCALARS[code]}"))
        if code == STRING:
            return [self.text() for _ in range(count)]
        if code - FIRST_VECTOR in SCALARS:
            return [list(self.unpack(f"{self.number()}{SCALARS[code - FIRST_VECTOR]}")) for _ in range(count)]
        if code == STRING_VECTOR:
            return [[self.text() for _ in range(self.number())] for _ in range(count)]
        raise UnreadableGraph(f"a property has graph-tool's value type {code}", "save without that property")


def read_graph_tool(path: str | Path) -> GraphToolFile:
    """Read a ``.gt`` or ``.gt.gz`` file of version 1.

    Raises:
        UnreadableGraph: If it is none, ends too early, or holds Python objects or long doubles.
    """
    path = Path(path)
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if data[:6] != MAGIC or len(data) < 8:
        raise UnreadableGraph(f"{path} is no graph-tool file", "its first bytes are the signature '⛾ gt'")
    reader = _Reader(data, ">" if data[7] else "<", 8)
    try:
        return _graph(reader)
    except struct.error as error:
        raise UnreadableGraph(f"{path} ends too early", "save or fetch it again") from error


def _graph(reader: _Reader) -> GraphToolFile:
    reader.text()
    directed, size = bool(reader.number("B")), reader.number()
    letter = next(letter for letter, bits in (("B", 8), ("H", 16), ("I", 32), ("Q", 64)) if size < 2**bits)
    edges: list[tuple[int, int]] = []
    for source in range(size):
        edges += [(source, target) for target in reader.unpack(f"{reader.number()}{letter}")]
    counts = {"graph": 1, "vertex": size, "edge": len(edges)}
    found: dict[str, dict[str, list[Any]]] = {owner: {} for owner in OWNERS}
    for _ in range(reader.number()):
        owner, name = OWNERS[reader.number("B")], reader.text()
        found[owner][name] = reader.values(reader.number("B"), counts[owner])
    return GraphToolFile(directed, size, edges, found["vertex"], found["edge"])
