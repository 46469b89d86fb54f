from __future__ import annotations

import torch

from separata_oea import StepScores
from separata_oea.peers import PopularExperts

SCORES = torch.tensor(
    [
        [0.4, 0.3, 0.2, 0.1, 0.0],
        [0.4, 0.1, 0.3, 0.2, 0.0],
        [0.3, 0.4, 0.1, 0.2, 0.0],
        [0.0, 0.1, 0.2, 0.3, 0.4],
    ]
)


def test_the_least_popular_experts_are_dropped() -> None:
    """Top-2 of the rows: (0, 1), (0, 2), (1, 0), (4, 3); experts 0 and 1 are chosen most."""
    found = PopularExperts(2, 2).step(StepScores(SCORES))
    assert found.union.tolist() == [True, True, False, False, False]
    assert found.indices.tolist() == [[0, 1], [0, 5], [1, 0], [1, 5]]
    torch.testing.assert_close(found.weights[0], torch.tensor([4 / 7, 3 / 7]))
    torch.testing.assert_close(found.weights[3], torch.tensor([1.0, 0.0]))


def test_all_experts_kept_is_plain_routing() -> None:
    found = PopularExperts(2, 5).step(StepScores(SCORES))
    assert torch.equal(found.indices, SCORES.topk(2).indices)
    assert int(found.experts_hit) == 5


def test_rows_that_are_not_live_have_no_vote() -> None:
    found = PopularExperts(2, 2).step(StepScores(SCORES, active=torch.tensor([False, False, False, True])))
    assert found.union.tolist() == [False, False, False, True, True]
