from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separata_oea import patch_moe
from separata_oea.evaluation import piggybacked, pruned
from separata_oea.timing import (
    StepTime,
    balanced_indices,
    decoding,
    expert_times,
    prefilled,
    step_times,
    summary,
)


def test_every_step_of_every_turn_is_timed(qwen3: Any, ids: Tensor) -> None:
    found = step_times(qwen3, ids, {"k0 = 2": piggybacked(2)}, steps=3, rounds=2)
    assert [one.routing for one in found] == (["plain"] * 3 + ["k0 = 2"] * 3) * 2
    assert all(one.seconds > 0 for one in found)
    # Each turn decodes the same text from the same cache.
    assert [one.experts_hit for one in found[:6]] == [one.experts_hit for one in found[6:]]


def test_a_summary_compares_medians() -> None:
    times = [
        StepTime(name, hit, second)
        for name, hit, second in [("plain", 9, 2.0), ("plain", 7, 4.0), ("x", 5, 1.5)]
    ]
    plain, other = summary(times)
    assert (plain["experts_hit"], plain["of_plain"]) == (8, 1)
    assert (other["milliseconds"], other["of_plain"]) == (1500, 0.5)


def test_a_turn_is_taken_back(qwen3: Any, ids: Tensor) -> None:
    cache = prefilled(qwen3, ids[:, :7])
    run = decoding(qwen3, cache, ids[:, 7:], pruned(2))
    first: Any = run()
    second: Any = run()
    assert cache.get_seq_length() == 7
    assert first.summary() == second.summary()
    assert first.summary()["steps"] == 3
    assert decoding(qwen3, cache, ids[:, 7:], None)() is None


@pytest.mark.parametrize("experts", [4, 5, 11, 16])
def test_indices_hit_as_many_experts_as_asked_for(experts: int) -> None:
    found = balanced_indices(experts, 4, 4)
    assert found.unique().tolist() == list(range(experts))
    assert all(row.unique().numel() == 4 for row in found)


def test_experts_are_timed_at_each_size(qwen3: Any) -> None:
    found = expert_times(qwen3.model.layers[0].mlp.experts, [4, 16], tokens=4, k=4, hidden=32, rounds=1)
    assert len(found) == 2
    assert all(0 < seconds < 10 for seconds in found)


def test_a_patched_layer_alone_is_routed(qwen3: Any) -> None:
    block = qwen3.model.layers[0].mlp
    with torch.no_grad(), patch_moe(block) as activation:
        block(torch.ones(3, 1, 32))
        assert not activation.schedulers
        with activation.step():
            block(torch.ones(3, 1, 32))
    assert activation.summary()["experts_hit"] == 2
