"""The sweep finds the number of blocks without labels."""

from __future__ import annotations

import numpy as np

from separata_parpic import ParPIC, generators, sweep


def test_the_number_of_blocks_has_the_highest_modularity() -> None:
    chances = np.full((4, 4), 0.02) + 0.28 * np.eye(4)
    graph, _ = generators.block_model((50,) * 4, chances, np.random.default_rng(0))
    found = sweep(graph, range(2, 7), (0.25, 0.5), like=ParPIC(n_init=3, random_state=0))
    assert found.best.n_clusters == 4
    assert len(found.rows) == 10
    scores = [row["modularity"] for row in found.rows]
    assert scores == sorted(scores, reverse=True)
