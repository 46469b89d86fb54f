"""Ranks from a byte budget, and the bytes that ranks cost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .config import XKVConfig
from .errors import RankClamped

VALUE_SHARE = 0.6  # values get 1.5 times the rank of the keys: 1.5 / (1 + 1.5), as in xKV


def factor_elements(length: int, widths: Sequence[int], rank: int) -> int:
    """Numbers in the factors of one group: ``length x rank`` rows and ``rank x width`` bases.

    Args:
        length: Tokens.
        widths: Width of each layer, heads times head dimension.
        rank: Rank of the group.
    """
    return rank * (length + sum(widths))


def resolve_ranks(
    config: XKVConfig, length: int, key_widths: Sequence[int], value_widths: Sequence[int]
) -> tuple[int, int]:
    """Ranks of a group's keys and values.

    Without explicit ranks they solve, for a total rank R of which keys get 0.4 and values 0.6,
    ``ratio = L (D_k + D_v) / (0.4 R (L + D_k) + 0.6 R (L + D_v))`` with D the summed widths; for equal widths
    that is the paper's ``2WLd / ((L + Wd)(r_k + r_v))``. What one side can't use goes to the other.

    Args:
        config: Gives ``ratio`` or explicit ranks.
        length: Tokens to be compressed.
        key_widths: Width of each layer's keys.
        value_widths: Width of each layer's values; empty if the values are not factorised.

    Returns:
        Rank of the keys and rank of the values, at least 1 each (0 for values that are not factorised).
    """
    key_limit = min(length, sum(key_widths))
    value_limit = min(length, sum(value_widths))
    if config.rank_key is not None:
        rank_value = config.rank_value if config.rank_value is not None else round(1.5 * config.rank_key)
        return _clamped("key", config.rank_key, key_limit), _clamped("value", rank_value, value_limit)
    budget = length * (sum(key_widths) + sum(value_widths)) / config.ratio
    if not value_widths:
        return _within(budget / (length + sum(key_widths)), key_limit), 0
    key_cost, value_cost = length + sum(key_widths), length + sum(value_widths)
    total = budget / ((1 - VALUE_SHARE) * key_cost + VALUE_SHARE * value_cost)
    rank_value = _within(VALUE_SHARE * total, value_limit)
    if rank_value < value_limit:
        return _within((1 - VALUE_SHARE) * total, key_limit), rank_value
    return _within((budget - rank_value * value_cost) / key_cost, key_limit), rank_value


def _within(rank: float, limit: int) -> int:
    return max(min(int(rank), limit), min(1, limit))


def _clamped(what: str, rank: int, limit: int) -> int:
    if rank > limit > 0:
        warnings.warn(
            f"rank_{what} is {rank}, but the group's {what}s have rank {limit} at most: {limit} is used, which is "
            "exact",
            RankClamped,
            stacklevel=2,
        )
    return min(rank, limit)
