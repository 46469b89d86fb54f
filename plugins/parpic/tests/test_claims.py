"""Each claim and benchmark has its function, and races run."""

from __future__ import annotations

import pytest

from separata.claims import Trial
from separata.registry import Registry, load_object
from separata_parpic import _plugin, benchmarks


@pytest.mark.parametrize(
    "path",
    [
        *[claim.proof for claim in _plugin.separata_claims()],
        *[benchmark.run for benchmark in _plugin.separata_benchmarks()],
    ],
)
def test_what_is_declared_is_there(path: str) -> None:
    assert load_object(path, "parpic").__doc__


@pytest.mark.parametrize("run", [benchmarks.embedding, benchmarks.clustering])
def test_the_first_race_of_each_benchmark_runs(run: object) -> None:
    first = next(iter(run(Trial("parpic", Registry(())))))  # type: ignore[operator]
    assert first.size == 1000
    first.ours()
    first.peer()


def test_the_benchmarks_graph_has_twelve_edges_a_vertex() -> None:
    graph = benchmarks.cyclic_blocks(2000, 0)
    assert graph.adjacency.nnz / len(graph) == pytest.approx(12, rel=0.05)
