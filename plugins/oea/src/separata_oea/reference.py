"""The paper's two phases word by word, in float64: what decides whether ``route`` is right."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .routing import Routing, check


def route_reference(
    scores: Tensor,
    k: int,
    k0: int,
    *,
    active: Tensor | None = None,
    mixing: Tensor | None = None,
    total: Tensor | None = None,
    loaded: Tensor | None = None,
    target: float | None = None,
    p: float = 1.0,
    k_max: int | None = None,
    max_rank: int | None = None,
    pooled: bool = True,
    shards: int = 1,
) -> Routing:
    """Route a batch in Python loops; arguments, errors and result as of ``route``."""
    k_max = k if k_max is None else k_max
    check(scores, k, k0, active=active, k_max=k_max, max_rank=max_rank, shards=shards)
    tokens, experts = scores.shape
    rows: list[list[float]] = scores.double().tolist()
    own_scores = scores.masked_fill(scores == -math.inf, 0.0)
    mixed: list[list[float]] = (own_scores if mixing is None else mixing).double().tolist()
    sums: list[float] = [1.0] * tokens if total is None else total.double().tolist()
    live: list[bool] = [True] * tokens if active is None else active.tolist()
    anyway = set() if loaded is None else set(loaded.nonzero().flatten().tolist())
    ranked = [
        sorted((e for e in range(experts) if row[e] > -math.inf), key=lambda e, row=row: (-row[e], e))  # type: ignore[misc]
        for row in rows
    ]

    def union_of(count: int, share: float) -> tuple[list[list[int]], set[int]]:
        # Phase one: what each token loads by itself.
        base = []
        for token, order in enumerate(ranked):
            own: list[int] = []
            held, everything = 0.0, sum(mixed[token]) or 1.0
            for expert in order[:count]:
                if share < 1 and held / everything >= share:
                    break
                own.append(expert)
                held += mixed[token][expert]
            base.append(own if live[token] else [])
        return base, anyway | {expert for own in base for expert in own}

    block = experts // shards
    load = []
    for count in range(1, k + 1):
        everyone = union_of(count, 1.0)[1]
        load.append(max(sum(e in everyone for e in range(s * block, (s + 1) * block)) for s in range(shards)))
    within = [count for count in range(1, k0 + 1) if target is None or load[count - 1] <= target]
    chosen_k0 = max(within, default=1)
    base, union = union_of(chosen_k0, p)

    indices, weights = [], []
    for token, order in enumerate(ranked):
        # Phase two: go on down the ranks and join what others load.
        own = list(base[token])
        for expert in order[: experts if max_rank is None else max_rank]:
            if pooled and expert in union and expert not in own and len(own) < k_max:
                own.append(expert)
        own.sort(key=order.index)
        held = sum(mixed[token][expert] for expert in own)
        weight = [sums[token] * mixed[token][expert] / held if held else 0.0 for expert in own]
        indices.append(own + [experts] * (k_max - len(own)))
        weights.append(weight + [0.0] * (k_max - len(own)))
    return Routing(
        torch.tensor(indices, dtype=torch.int64).reshape(tokens, k_max),
        torch.tensor(weights, dtype=torch.float64).reshape(tokens, k_max),
        torch.tensor([expert in union for expert in range(experts)]),
        torch.tensor(load),
        torch.tensor(chosen_k0),
    )
