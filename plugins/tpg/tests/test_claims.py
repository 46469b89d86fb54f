"""Each claim and benchmark has its function, and the peers of the races do the same work."""

from __future__ import annotations

import numpy as np
import pytest

from separata.registry import load_object
from separata_tpg import _plugin, benchmarks


@pytest.mark.parametrize(
    "path",
    [
        *[claim.proof for claim in _plugin.separata_claims()],
        *[benchmark.run for benchmark in _plugin.separata_benchmarks()],
    ],
)
def test_what_is_declared_is_there(path: str) -> None:
    assert load_object(path, "tpg").__doc__


@pytest.mark.parametrize("peer", [benchmarks.step_by_step, benchmarks.sliding_sums])
def test_peers_sum_the_same(peer: object) -> None:
    values = np.random.default_rng(0).normal(size=200)
    np.testing.assert_allclose(peer(values, 9), benchmarks.window_sums(values, 9), atol=1e-12)  # type: ignore[operator]
