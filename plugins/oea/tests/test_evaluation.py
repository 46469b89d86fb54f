from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separata_kit_llm import token_nll
from separata_oea.errors import InvalidSetting, TooFewSamples
from separata_oea.evaluation import compare, experts_per_token, piggybacked, profile, pruned, rows_of


def test_rows_are_spread_over_the_text() -> None:
    found = rows_of(torch.arange(100), 3, 10)
    assert found[:, 0].tolist() == [0, 45, 90]
    assert found[1].tolist() == list(range(45, 55))
    with pytest.raises(TooFewSamples, match="need 101"):
        rows_of(torch.arange(100), 101, 1)


def test_the_plain_models_score_is_its_likelihood(qwen3: Any, ids: Tensor) -> None:
    found = compare(qwen3, ids, {}, batch=3, prompt=4)["plain"]
    expected = token_nll(qwen3, ids)[:, 3:].mean()
    # One by one and all at once, tokens are added up in another order.
    assert found.cross_entropy == pytest.approx(float(expected), rel=1e-5)
    assert found.kl == 0


def test_top_k0_does_not_depend_on_the_batch_and_joining_does(qwen3: Any, ids: Tensor) -> None:
    routings = {"oea": piggybacked(2), "pruned": pruned(2)}
    small, large = (compare(qwen3, ids, routings, batch=batch) for batch in (1, 6))
    assert small["pruned"].cross_entropy == pytest.approx(large["pruned"].cross_entropy, rel=1e-5)
    assert small["oea"].cross_entropy == pytest.approx(small["pruned"].cross_entropy, rel=1e-5)
    assert large["oea"].kl < large["pruned"].kl


def test_a_profile_has_a_row_a_routing_and_layer(qwen3: Any, ids: Tensor) -> None:
    rows = profile(qwen3, ids, batch=6, k0s=[1, 2])
    whole = [row for row in rows if row["layer"] == "all"]
    assert [(row["routing"], row["k0"]) for row in whole] == [
        ("plain", 4),
        ("oea", 1),
        ("oea", 2),
        ("pruned", 1),
        ("pruned", 2),
    ]
    assert len(rows) == 5 * 3
    hits = {row["k0"]: row["experts_hit"] for row in whole if row["routing"] != "pruned"}
    assert hits[1] < hits[2] < hits[4]
    assert all(row["rise"] == row["cross_entropy"] - whole[0]["cross_entropy"] for row in whole)


@pytest.mark.parametrize(("batch", "prompt"), [(4, 1), (3, 0), (3, 9)])
def test_batches_part_the_rows_and_prompts_leave_something(
    batch: int, prompt: int, qwen3: Any, ids: Tensor
) -> None:
    with pytest.raises(InvalidSetting, match="multiple of the batch"):
        compare(qwen3, ids, {}, batch=batch, prompt=prompt)


def test_k0_is_within_the_models_k(qwen3: Any, ids: Tensor) -> None:
    assert experts_per_token(qwen3) == 4
    with pytest.raises(InvalidSetting, match="1 to 4"):
        profile(qwen3, ids, batch=6, k0s=[5])
