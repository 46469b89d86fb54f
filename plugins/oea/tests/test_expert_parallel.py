from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from separata_oea import BatchScheduler, OEAConfig, StepScores, owned_hits, owned_part, route
from separata_oea.errors import InvalidSetting

SCORES = torch.randn(12, 16, generator=torch.Generator().manual_seed(0)).softmax(-1)


def joined(rank: int) -> None:
    """Each rank has half of the rows: joined unions route them as one process routes all."""
    whole, mine = route(SCORES, 4, 2), slice(6 * rank, 6 * rank + 6)
    found = BatchScheduler(4, OEAConfig(k0=2, expert_parallel="global")).step(StepScores(SCORES[mine]))
    assert torch.equal(found.union, whole.union)
    assert torch.equal(found.indices, whole.indices[mine])
    assert torch.equal(found.load, whole.load)
    alone = BatchScheduler(4, OEAConfig(k0=2)).step(StepScores(SCORES[mine]))
    assert int(alone.experts_hit) < int(whole.experts_hit)


def shared(rank: int) -> None:
    """Each rank has all rows and half of the experts: partial outputs sum to the whole layer's."""
    generator = torch.Generator().manual_seed(1)
    experts = torch.randn(16, 8, 8, generator=generator)
    states = torch.randn(12, 8, generator=generator)

    def run(weights: torch.Tensor, indices: torch.Tensor, parameters: torch.Tensor) -> torch.Tensor:
        padded = torch.cat([parameters, torch.zeros(1, 8, 8)])
        return torch.einsum("tk,tkij,tj->ti", weights, padded[indices], states)

    whole = route(SCORES, 4, 2)
    local, weights = owned_part(whole, rank, 2)
    output = run(weights, local, experts[8 * rank : 8 * rank + 8])
    assert local[local < 8].unique().numel() == int(owned_hits(whole, 2)[rank])
    dist.all_reduce(output)
    torch.testing.assert_close(output, run(whole.weights, whole.indices, experts), rtol=1e-4, atol=1e-4)


def process(check: Callable[[int], None], rank: int, store: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    check(rank)
    dist.destroy_process_group()


@pytest.mark.parametrize("check", [joined, shared])
def test_two_processes_route_as_one(check: Callable[[int], None], tmp_path: Path) -> None:
    # Forked, not spawned: a new interpreter would spend seconds on importing torch.
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=process, args=(check, rank, tmp_path / "store")) for rank in range(2)]
    for one in running:
        one.start()
    for one in running:
        one.join(60)
    assert [one.exitcode for one in running] == [0, 0]


def test_parts_are_disjoint_and_complete(generator: torch.Generator) -> None:
    routing = route(torch.rand(10, 12, generator=generator), 4, 2)
    weights = torch.zeros_like(routing.weights)
    for rank in range(3):
        local, own = owned_part(routing, rank, 3)
        assert bool(((local == 4) == (own == 0)).all())
        weights += own
    assert torch.equal(weights, routing.weights)
    assert int(owned_hits(routing, 3).sum()) == int(routing.experts_hit)


@pytest.mark.parametrize(("rank", "shards"), [(0, 5), (3, 3), (-1, 3)])
def test_blocks_are_equal_and_ranks_among_them(rank: int, shards: int) -> None:
    with pytest.raises(InvalidSetting, match="ranks"):
        owned_part(route(torch.rand(4, 12), 4, 2), rank, shards)
