"""Ranks follow from bytes, and bytes from ranks."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separata_xkv.config import XKVConfig
from separata_xkv.errors import RankClamped
from separata_xkv.ranks import factor_elements, resolve_ranks

LLAMA = [1024] * 4  # four layers of Llama-3.1-8B: 8 key-value heads of 128
TOKENS_64K = 65536


def bytes_ratio(length: int, widths: list[int], rank_key: int, rank_value: int) -> float:
    exact = 2 * length * sum(widths)
    return exact / (factor_elements(length, widths, rank_key) + factor_elements(length, widths, rank_value))


def test_the_papers_ranks_give_the_papers_ratio() -> None:
    ratio = bytes_ratio(TOKENS_64K, LLAMA, 384, 576)
    assert ratio == pytest.approx(8.03, abs=0.005)
    # One landmark a chunk of 8 keys is a sixteenth of keys and values.
    assert 1 / (1 / ratio + 1 / 16) == pytest.approx(5.35, abs=0.005)


def test_the_papers_ratio_gives_the_papers_ranks() -> None:
    ratio = bytes_ratio(TOKENS_64K, LLAMA, 384, 576)
    rank_key, rank_value = resolve_ranks(XKVConfig(ratio=ratio * (1 - 1e-9)), TOKENS_64K, LLAMA, LLAMA)
    assert (rank_key, rank_value) == (384, 576)


@given(
    ratio=st.floats(1, 64),
    length=st.integers(1, 5000),
    width=st.integers(1, 256),
    layers=st.integers(1, 8),
)
def test_factors_take_no_more_than_their_share_and_no_more_ranks_would_fit(
    ratio: float, length: int, width: int, layers: int
) -> None:
    widths = [width] * layers
    rank_key, rank_value = resolve_ranks(XKVConfig(ratio=ratio), length, widths, widths)
    limit = min(length, sum(widths))
    assert 1 <= rank_key <= limit
    assert 1 <= rank_value <= limit
    if rank_key > 1 and rank_value > 1:
        assert bytes_ratio(length, widths, rank_key, rank_value) >= ratio * (1 - 1e-9)
    # Each rank was rounded down once; two more of them exceed the budget, unless the states have no more.
    if rank_key + 1 <= limit and rank_value + 1 <= limit:
        assert bytes_ratio(length, widths, rank_key + 1, rank_value + 1) <= ratio * (1 + 1e-9)


@given(ratio=st.floats(2, 16))
def test_values_get_one_and_a_half_times_the_rank_of_the_keys(ratio: float) -> None:
    rank_key, rank_value = resolve_ranks(XKVConfig(ratio=ratio), 10_000, LLAMA, LLAMA)
    assert rank_value / rank_key == pytest.approx(1.5, rel=0.02)


def test_keys_take_what_values_can_not_use() -> None:
    # At ratio 1 values reach full rank, 48, well within their share.
    rank_key, rank_value = resolve_ranks(XKVConfig(ratio=1), 400, [16] * 3, [16] * 3)
    assert rank_value == 48
    assert rank_key == int((2 * 400 * 48 - 48 * 448) / 448)


def test_explicit_ranks_win_and_values_follow_keys() -> None:
    assert resolve_ranks(XKVConfig(rank_key=10), 400, [16] * 3, [16] * 3) == (10, 15)
    assert resolve_ranks(XKVConfig(rank_key=10, rank_value=7), 400, [16] * 3, [16] * 3) == (10, 7)


def test_explicit_ranks_beyond_the_tokens_are_clamped_with_a_warning() -> None:
    with pytest.warns(RankClamped, match="rank_key is 100, but the group's keys have rank 20"):
        assert resolve_ranks(XKVConfig(rank_key=100, rank_value=9), 20, [16] * 3, [16] * 3) == (20, 9)


def test_a_ratio_never_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve_ranks(XKVConfig(ratio=1), 3, [16] * 3, [16] * 3)


def test_values_that_are_kept_exact_get_no_rank() -> None:
    rank_key, rank_value = resolve_ranks(XKVConfig(ratio=4), 1000, [512] * 4, [])
    assert rank_value == 0
    assert factor_elements(1000, [512] * 4, rank_key) == pytest.approx(1000 * 2048 / 4, rel=0.01)
