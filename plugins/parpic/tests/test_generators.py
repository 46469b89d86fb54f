"""Block models have the edges that their probabilities say."""

from __future__ import annotations

import numpy as np
import pytest

from separata_parpic import errors, generators


def test_edges_are_as_frequent_as_their_probabilities() -> None:
    graph, truth = generators.block_model((200, 300), [[0.1, 0.4], [0.0, 0.2]], np.random.default_rng(0))
    counts = graph.adjacency.toarray()
    for source, target, chance in ((0, 0, 0.1), (0, 1, 0.4), (1, 0, 0.0), (1, 1, 0.2)):
        block = counts[truth == source][:, truth == target]
        pairs = block.size - (len(block) if source == target else 0)
        # Five standard deviations of a binomial share.
        assert abs(block.sum() / pairs - chance) <= 5 * np.sqrt(chance * (1 - chance) / pairs)
    assert counts.max() == 1
    assert not np.diagonal(counts).any()


@pytest.mark.parametrize("chances", [[[0.5]], [[0.5, 2.0], [0.1, 0.1]], [[0.5, -0.1], [0.1, 0.1]]])
def test_what_is_no_matrix_of_probabilities_is_refused(chances: list[list[float]]) -> None:
    with pytest.raises(errors.InvalidSetting, match="probabilities"):
        generators.block_model((3, 3), chances, np.random.default_rng(0))
