"""One decode step's routing: each token loads a few experts, and joins others that the batch loads anyway."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed
from torch import Tensor

from .errors import InvalidScores, InvalidSetting

EXCLUDED = torch.iinfo(torch.int64).min


class Routing(NamedTuple):
    """Which experts process which token.

    Args:
        indices: A ``tokens x k_max`` int64 tensor of experts, best first; N, the number of experts, where a token
            has fewer.
        weights: A ``tokens x k_max`` tensor of mixing weights, 0 where there is no expert.
        union: An ``experts`` bool tensor: who is loaded.
        load: A ``k`` int64 tensor: how many experts ``k0 = 1 ... k`` would load; the last is plain top-k's.
        k0: A scalar int64 tensor: the k0 that was used.
    """

    indices: Tensor
    weights: Tensor
    union: Tensor
    load: Tensor
    k0: Tensor

    @property
    def experts_hit(self) -> Tensor:
        """How many experts are loaded, T: a scalar int64 tensor."""
        return self.union.sum()


def route(
    scores: Tensor,
    k: int,
    k0: int,
    *,
    active: Tensor | None = None,
    mixing: Tensor | None = None,
    total: Tensor | None = None,
    loaded: Tensor | None = None,
    target: float | Tensor | None = None,
    p: float = 1.0,
    k_max: int | None = None,
    max_rank: int | None = None,
    pooled: bool = True,
    shards: int = 1,
    group: torch.distributed.ProcessGroup | None = None,
) -> Routing:
    """Route a batch so that it loads no more experts than each token's ``k0`` best.

    The paper's two phases in one: a token's ``k0`` best experts are among those that are loaded and are its best
    there, so phase two is a top-k of the scores masked to the union of all tokens' ``k0`` best. Equal scores rank
    by the lower expert. Tensor operations only: nothing waits for an accelerator, and it compiles as one graph.

    Args:
        scores: A ``tokens x experts`` floating tensor to rank by; ``-inf`` where an expert is out of the question.
        k: Experts a token of the plain model.
        k0: Experts that each token may load.
        active: A ``tokens`` bool tensor; the others load nothing and only join. All if not given.
        mixing: A ``tokens x experts`` tensor of nonnegative scores that weights are made of; ``scores`` themselves
            if not given.
        total: A ``tokens`` tensor: what each token's weights sum to; 1 if not given.
        loaded: An ``experts`` bool tensor: who is loaded whatever these tokens do, such as for prompts in the same
            batch. They count, and are free to join.
        target: Use the largest k0 up to the given one that loads no more experts than this, at least 1.
        p: Stop loading for a token once its experts hold this share of its mixing scores.
        k_max: Most experts a token, ``k`` if not given.
        max_rank: Join only experts among a token's so many best, all if not given.
        pooled: Join the experts of other tokens. Without it this is plain top-``k0``: phase one alone.
        shards: Ranks that own the experts in equal blocks; ``load`` and ``target`` then count the fullest one's.
        group: Ranks that hold other tokens of the same step; the union is theirs, too.

    Returns:
        The routing; weights have the dtype of ``scores``.

    Raises:
        InvalidSetting: If k0 is not within 1 and k, or another number out of its range.
        InvalidScores: If scores are NaN or shapes don't fit. On accelerators NaN stops the device instead.
    """
    k_max = k if k_max is None else k_max
    check(scores, k, k0, active=active, k_max=k_max, max_rank=max_rank, shards=shards)
    experts = scores.shape[1]
    mixing = scores.masked_fill(scores == -torch.inf, 0.0) if mixing is None else mixing
    keys = _keys(scores)
    top_keys, top = keys.topk(min(k, experts))
    rank = torch.arange(top.shape[1], device=top.device)
    base = top_keys > EXCLUDED
    if active is not None:
        base = base & active[:, None]
    first = _first_rank(top, base, experts, k, loaded, group)
    load = _load(first, k, shards)
    chosen_k0 = _largest(load[:k0], target)
    if p < 1:
        base = base & (_share_before(mixing, top) < p)
        first = _first_rank(top, base, experts, k, loaded, group)
    union = first < chosen_k0
    if pooled:
        allowed = union.expand(scores.shape)
        if max_rank is not None and max_rank < experts:
            allowed = torch.zeros_like(allowed).scatter(1, keys.topk(max_rank).indices, True) & allowed
    else:
        allowed = torch.zeros_like(keys, dtype=torch.bool).scatter(1, top, base & (rank < chosen_k0))
    indices, weights = _mixed(keys.masked_fill(~allowed, EXCLUDED), mixing, total, k_max)
    return Routing(indices, weights.to(scores.dtype), union, load, chosen_k0)


def check(
    scores: Tensor,
    k: int,
    k0: int,
    *,
    active: Tensor | None = None,
    k_max: int | None = None,
    max_rank: int | None = None,
    shards: int = 1,
) -> None:
    """Refuse numbers out of range and scores that can't be ranked; see ``route``."""
    if scores.dim() != 2 or not scores.is_floating_point():
        raise InvalidScores(
            f"scores are {scores.dtype} of shape {tuple(scores.shape)}", "give floats, tokens x experts"
        )
    experts = scores.shape[1]
    if not 1 <= k0 <= k or k0 > experts:
        raise InvalidSetting(
            f"k0 is {k0} with k = {k} of {experts} experts", f"k0 is 1 to {min(k, experts)} here"
        )
    if k_max is not None and k_max < k:
        raise InvalidSetting(f"k_max is {k_max}", f"it is at least the model's k, {k}")
    if max_rank is not None and max_rank < k0:
        raise InvalidSetting(f"max_rank is {max_rank}", f"it is at least k0, {k0}")
    if experts % shards:
        raise InvalidSetting(f"{experts} experts do not part into {shards} shards", "give a divisor")
    if active is not None and (active.shape != scores.shape[:1] or active.dtype != torch.bool):
        raise InvalidScores(
            f"active is {active.dtype} of shape {tuple(active.shape)}", f"give {scores.shape[0]} bools"
        )
    if torch.compiler.is_compiling() or scores.device.type != "cpu":
        torch._assert_async(~scores.isnan().any())
    elif bool(scores.isnan().any()):
        raise InvalidScores("router scores are NaN", "look for what overflows in the model before its router")


def _keys(scores: Tensor) -> Tensor:
    """Distinct int64 keys in the order of the scores, the lower expert first among equal ones.

    The bits of a float in the order of integers make the upper half, the expert the lower: unlike a stable sort of
    each row, this leaves the work to topk. Float64 has no room for that and is sorted.
    """
    experts = scores.shape[1]
    lower = torch.arange(experts - 1, -1, -1, device=scores.device)
    if scores.dtype == torch.float64:
        order = scores.sort(dim=1, descending=True, stable=True).indices
        keys = torch.empty_like(order).scatter(1, order, lower.expand_as(order))
    else:
        # Adding zero turns -0.0, which is equal to 0.0 but has other bits, into it.
        bits = (scores.float() + 0.0).view(torch.int32)
        ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        keys = (ordered.long() << 32) | lower
    return keys.masked_fill(scores == -torch.inf, EXCLUDED)


def _first_rank(
    top: Tensor,
    counted: Tensor,
    experts: int,
    k: int,
    loaded: Tensor | None,
    group: torch.distributed.ProcessGroup | None,
) -> Tensor:
    """The best rank at which any counted token has each expert; k if none has."""
    # One more column takes what does not count.
    place = torch.where(counted, top, experts).flatten()
    rank = torch.arange(top.shape[1], device=top.device).expand_as(top).flatten()
    first = torch.full((experts + 1,), k, device=top.device)
    first = first.scatter_reduce(0, place, rank, "amin")[:experts]
    if loaded is not None:
        first = first.masked_fill(loaded, 0)
    if group is not None:
        torch.distributed.all_reduce(first, torch.distributed.ReduceOp.MIN, group)
    return first


def _load(first: Tensor, k: int, shards: int) -> Tensor:
    """How many experts each k0 from 1 to k loads, on the rank that loads most."""
    upto = torch.arange(1, k + 1, device=first.device)
    hit = first.view(shards, -1, 1) < upto
    return hit.sum(1).amax(0)


def _largest(load: Tensor, target: float | Tensor | None) -> Tensor:
    """The largest k0 whose load keeps to the target, at least 1."""
    if target is None:
        return torch.full((), load.shape[0], device=load.device)
    return (load <= target).sum().clamp(min=1)


def _share_before(mixing: Tensor, top: Tensor) -> Tensor:
    """The share of a token's mixing scores that better experts hold, at each of its top ranks."""
    held = mixing.gather(1, top).double()
    # Of nothing there is no share: a row of zeros keeps all its base.
    everything = mixing.double().sum(1, keepdim=True)
    return (held.cumsum(1) - held) / everything.masked_fill(everything == 0, 1.0)


def _mixed(keys: Tensor, mixing: Tensor, total: Tensor | None, k_max: int) -> tuple[Tensor, Tensor]:
    """The best experts by key, and their weights."""
    experts = keys.shape[1]
    chosen_keys, chosen = keys.topk(min(k_max, experts))
    valid = chosen_keys > EXCLUDED
    held = mixing.gather(1, chosen)
    held = (held if held.dtype == torch.float64 else held.float()).masked_fill(~valid, 0.0)
    # A row of zeros, such as one without experts, keeps them.
    weights = held / held.sum(1, keepdim=True).clamp(min=torch.finfo(held.dtype).tiny)
    if total is not None:
        weights = weights * total[:, None]
    indices = torch.where(valid, chosen, experts)
    short = (0, k_max - chosen.shape[1])
    return (
        torch.nn.functional.pad(indices, short, value=experts),
        torch.nn.functional.pad(weights, short),
    )
