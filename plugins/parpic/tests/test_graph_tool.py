"""graph-tool's files: the two that come along, and damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from separata_parpic import errors, read_graph
from separata_parpic._plugin import DATA
from separata_parpic.graph_tool import read_graph_tool


def test_the_political_blogs_are_as_published() -> None:
    found = read_graph_tool(DATA / "polblogs.gt.gz")
    assert (found.directed, found.size, len(found.edges)) == (True, 1490, 19_090)
    assert np.bincount(np.asarray(found.vertex_properties["value"], int)).tolist() == [758, 732]


def test_the_food_web_has_161_species_in_14_groups() -> None:
    graph = read_graph("serengeti-foodweb")
    assert len(graph) == 161
    assert len(np.unique(graph.labels["group"])) == 14


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_ends_too_early_is_refused(share: float, tmp_path: Path) -> None:
    data = gzip.decompress((DATA / "serengeti-foodweb.gt.gz").read_bytes())
    (tmp_path / "short.gt").write_bytes(data[: int(share * len(data))])
    with pytest.raises(errors.UnreadableGraph):
        read_graph_tool(tmp_path / "short.gt")
