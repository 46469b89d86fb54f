"""How long decode steps take, and how that depends on the number of distinct experts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from .evaluation import plain
from .patching import MakeScheduler, clock, patch_moe


@attrs.frozen
class StepTime:
    """One decode step.

    Args:
        routing: What routed it.
        experts_hit: Distinct experts, summed over layers.
        seconds: Its wall time.
    """

    routing: str
    experts_hit: float
    seconds: float


def step_times(
    model: Any,
    ids: Tensor,
    routings: Mapping[str, MakeScheduler],
    *,
    steps: int = 8,
    rounds: int = 3,
) -> list[StepTime]:
    """Time decode steps of several routings in turns on the same text.

    Args:
        model: A causal mixture of experts.
        ids: A ``rows x length`` tensor; its last ``steps`` columns are fed one by one behind the others.
        routings: Name to what makes its schedulers; ``plain`` is added.
        steps: Steps of each turn.
        rounds: Turns of each routing, after one that does not count.
    """
    ids = ids.to(model.device)
    cache = prefilled(model, ids[:, :-steps])
    found = []
    for turn in range(rounds + 1):
        for name, make in {"plain": plain(), **routings}.items():
            with torch.no_grad(), patch_moe(model, scheduler=make) as activation:
                for column in torch.split(ids[:, -steps:], 1, dim=1):
                    begin = clock(model)
                    model(input_ids=column, cache=cache, use_cache=True)
                    seconds = clock(model) - begin
                    if turn:
                        found.append(StepTime(name, float(activation.last_hit().sum()), seconds))
            cache.crop(-steps)
    return found


def summary(times: Sequence[StepTime]) -> list[dict[str, Any]]:
    """Mean experts and median milliseconds of each routing, with its share of the plain model's."""
    names = list(dict.fromkeys(one.routing for one in times))
    median = {name: statistics.median(one.seconds for one in times if one.routing == name) for name in names}
    rows = []
    for name in names:
        hits = [one.experts_hit for one in times if one.routing == name]
        rows.append(
            {
                "routing": name,
                "experts_hit": sum(hits) / len(hits),
                "milliseconds": 1e3 * median[name],
                "of_plain": median[name] / median["plain"],
            }
        )
    return rows


@torch.no_grad()
def prefilled(model: Any, ids: Tensor) -> Any:
    """The cache of a prompt."""
    return model(input_ids=ids, use_cache=True).cache


def decoding(model: Any, cache: Any, ids: Tensor, make: MakeScheduler | None) -> Callable[[], object]:
    """A function that decodes the columns of ``ids`` behind a cache, and takes them back.

    Args:
        model: A causal mixture of experts.
        cache: The cache of a prompt.
        ids: A ``rows x steps`` tensor.
        make: Makes the schedulers; the model as it is if None.
    """

    @torch.no_grad()
    def run() -> object:
        patching = nullcontext() if make is None else patch_moe(model, scheduler=make)
        with patching as activation:
            for column in torch.split(ids, 1, dim=1):
                model(input_ids=column, cache=cache, use_cache=True)
        clock(model)
        cache.crop(-ids.shape[1])
        return activation

    return run


def balanced_indices(experts: int, tokens: int, k: int) -> Tensor:
    """A ``tokens x k`` choice that hits exactly the first ``experts``, each about equally often."""
    return (torch.arange(tokens * k) % experts).view(tokens, k)


def expert_times(
    block: nn.Module, sizes: Sequence[int], *, tokens: int, k: int, hidden: int, rounds: int = 5
) -> list[float]:
    """Best seconds of a layer's experts alone, for each number of distinct experts, timed in turns.

    Args:
        block: The module that takes (hidden states, indices, weights).
        sizes: Numbers of distinct experts, at least k each.
        tokens: Tokens of the step; the assignments ``tokens x k`` are the same for every size.
        k: Experts a token.
        hidden: Width of the hidden states.
        rounds: Turns, after one that does not count.
    """
    parameter = next(block.parameters())
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(tokens, hidden, generator=generator).to(parameter)
    weights = torch.full((tokens, k), 1 / k).to(parameter)
    choices = [balanced_indices(size, tokens, k).to(parameter.device) for size in sizes]
    best = [float("inf")] * len(sizes)
    with torch.no_grad():
        for turn in range(rounds + 1):
            for place, indices in enumerate(choices):
                begin = clock(block)
                block(states, indices, weights)
                seconds = clock(block) - begin
                best[place] = min(best[place], seconds) if turn else best[place]
    return best
