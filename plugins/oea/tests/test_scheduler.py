from __future__ import annotations

from typing import Any

import pytest
import torch

from separata_oea import BatchScheduler, OEAConfig, StepScores, route
from separata_oea.errors import InvalidSetting


def scores(seed: int, rows: int = 8, experts: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, experts, generator=generator).softmax(-1)


def test_half_of_k_is_the_default() -> None:
    assert [BatchScheduler(k).k0 for k in (1, 4, 5, 8)] == [1, 2, 3, 4]


def test_statistics_are_those_of_the_steps() -> None:
    scheduler = BatchScheduler(4, OEAConfig(k0=2))
    assert scheduler.statistics() == {"steps": 0}
    hits, plain = [], []
    for seed in range(5):
        routing = scheduler.step(StepScores(scores(seed)))
        hits.append(float(routing.experts_hit))
        plain.append(float(route(scores(seed), 4, 4).experts_hit))
    found = scheduler.statistics()
    assert found["experts_hit"] == pytest.approx(sum(hits) / 5)
    assert found["experts_hit_sd"] == pytest.approx(float(torch.tensor(hits).std(correction=0)))
    assert found["plain_experts_hit"] == pytest.approx(sum(plain) / 5)
    assert (found["steps"], found["tokens"], found["k0"]) == (5, 8, 2)


def test_a_target_in_experts_is_kept_by_the_largest_k0() -> None:
    scheduler = BatchScheduler(4, OEAConfig(k0=4, target=14))
    for seed in range(20):
        routing = scheduler.step(StepScores(scores(seed)))
        load = routing.load.tolist()
        assert int(routing.experts_hit) <= 14
        assert int(routing.k0) == 4 or load[int(routing.k0)] > 14


def test_a_target_in_seconds_becomes_one_in_experts() -> None:
    """Steps take 3 ms and 1 ms an expert, so that 15 ms are 12 experts."""
    scheduler = BatchScheduler(4, OEAConfig(k0=4, target_seconds=0.015))
    seconds, hits = None, []
    for seed in range(40):
        routing = scheduler.step(StepScores(scores(seed), seconds=seconds))
        hits.append(int(routing.experts_hit))
        seconds = 0.003 + 0.001 * hits[-1]
    assert min(hits[:8]) > 12
    assert max(hits[10:]) <= 12


def test_a_step_may_bring_its_own_target() -> None:
    scheduler = BatchScheduler(4, OEAConfig(k0=4))
    assert int(scheduler.step(StepScores(scores(0), target=9)).experts_hit) <= 9


@pytest.mark.parametrize(("config", "sums"), [(OEAConfig(k0=2), 2.5), (OEAConfig(k0=2, renorm="one"), 1.0)])
def test_weights_sum_to_the_models_own_or_to_one(config: OEAConfig, sums: float) -> None:
    found = BatchScheduler(4, config).step(StepScores(scores(0), total=torch.full((8,), 2.5)))
    torch.testing.assert_close(found.weights.sum(1), torch.full((8,), sums))


def test_the_fullest_shard_counts() -> None:
    found = BatchScheduler(4, OEAConfig(k0=2, shards=4))
    routing = found.step(StepScores(scores(0)))
    assert found.statistics()["experts_hit"] == int(routing.union.view(4, 8).sum(1).max())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"k0": 5}, "1 to 4"),
        ({"k_max": 3}, "at least the model's k"),
        ({"k0": 3, "max_rank": 2}, "at least k0"),
        ({"expert_parallel": "global"}, "init_process_group"),
    ],
)
def test_settings_that_contradict_k_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        BatchScheduler(4, OEAConfig(**settings))


def test_compiled_it_calls_the_compiled_routing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def spied(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return route(*args, **kwargs)

    monkeypatch.setattr("separata_oea.scheduler._compiled", lambda: spied)
    BatchScheduler(4, OEAConfig(k0=2)).step(StepScores(scores(0)))
    assert not calls
    BatchScheduler(4, OEAConfig(k0=2, compiled=True)).step(StepScores(scores(0)))
    assert calls
