from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor

from separata_oea import estimate_T, expected_experts, record_scores, route
from separata_oea.errors import InvalidSetting, TooFewSamples


def test_the_papers_setting_hits_82_experts() -> None:
    assert expected_experts(128, 8, 16) == pytest.approx(82.4, abs=0.05)
    assert expected_experts(128, 8, 1) == 8
    assert expected_experts(8, 8, 3) == 8


@pytest.mark.parametrize("k0", [1, 3])
def test_it_is_the_mean_over_all_batches(k0: int, generator: torch.Generator) -> None:
    scores = torch.rand(9, 7, generator=generator)
    hits = [int(route(scores[list(rows)], k0, k0).experts_hit) for rows in combinations(range(9), 4)]
    assert estimate_T(scores, k0, 4).value == pytest.approx(sum(hits) / len(hits))


def test_the_standard_error_is_the_jackknifes(generator: torch.Generator) -> None:
    scores = torch.rand(12, 6, generator=generator)
    left_out = torch.tensor(
        [estimate_T(torch.cat([scores[:i], scores[i + 1 :]]), 2, 3).value for i in range(12)],
        dtype=torch.float64,
    )
    expected = (11 / 12 * ((left_out - left_out.mean()) ** 2).sum()).sqrt()
    assert estimate_T(scores, 2, 3).std_error == pytest.approx(float(expected))


def test_intervals_cover_the_truth_of_independent_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    truth, covered = expected_experts(16, 2, 4), 0
    for _ in range(200):
        low, high = estimate_T(torch.rand(60, 16, generator=generator), 2, 4).interval(0.9)
        covered += low <= truth <= high
    # Three standard errors of a share of 0.9 among 200.
    assert covered / 200 > 0.9 - 0.064


def test_scores_are_recorded_of_every_token_and_router(qwen3: Any, ids: Tensor) -> None:
    with torch.no_grad(), record_scores(qwen3) as found:
        qwen3(ids)
        qwen3(ids[:2])
    assert [[tuple(part.shape) for part in parts] for parts in found.values()] == [[(60, 16), (20, 16)]] * 2
    assert all(
        torch.allclose(part.sum(-1), torch.ones(len(part))) for parts in found.values() for part in parts
    )


@pytest.mark.parametrize(("samples", "batch"), [(4, 4), (5, 4), (1, 1)])
def test_more_samples_than_rows_are_needed(samples: int, batch: int) -> None:
    with pytest.raises(TooFewSamples, match="at least"):
        estimate_T(torch.rand(samples, 8), 2, batch)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidSetting):
        estimate_T(torch.rand(9, 8), 2, 0)
    with pytest.raises(InvalidSetting):
        estimate_T(torch.rand(9, 8), 9, 2)
    with pytest.raises(InvalidSetting):
        expected_experts(8, 9, 2)
