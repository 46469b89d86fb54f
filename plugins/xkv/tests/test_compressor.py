"""Layers are compressed together, at the right time, with their own rotation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import XKVCache

Draw = Callable[[int, int], Tensor]


def read(model: PreTrainedModel, cache: XKVCache, ids: Tensor) -> None:
    with torch.no_grad():
        model(ids, cache=cache)


def test_windows_are_consecutive_and_the_last_is_shorter(llama: PreTrainedModel, tokens: Draw) -> None:
    cache = XKVCache(llama.config, window=2, min_length=16)
    read(llama, cache, tokens(1, 40))
    assert [group.layers for group in cache.compressor.groups] == [[0, 1], [2, 3], [4]]


def test_windows_skip_layers_that_are_not_compressed(
    model_of: Callable[[str], PreTrainedModel], tokens: Draw
) -> None:
    model = model_of("gemma3")
    cache = XKVCache(model.config, window=2, min_length=16)
    read(model, cache, tokens(1, 40))
    assert [group.layers for group in cache.compressor.groups] == [[1, 3], [4]]


def test_a_single_token_compresses_nothing(llama: PreTrainedModel, tokens: Draw) -> None:
    cache = XKVCache(llama.config, window=2, min_length=16)
    read(llama, cache, tokens(1, 15))
    for _ in range(4):
        read(llama, cache, tokens(1, 1))
    assert (cache.prompt_length, cache.get_seq_length()) == (0, 19)
    read(llama, cache, tokens(1, 2))
    assert cache.prompt_length == 21


def test_a_tail_is_compressed_when_it_has_outgrown_its_limit(llama: PreTrainedModel, tokens: Draw) -> None:
    cache = XKVCache(llama.config, window=2, min_length=16, recompress_every=3)
    read(llama, cache, tokens(1, 20))
    lengths = []
    for _ in range(7):
        read(llama, cache, tokens(1, 1))
        lengths.append(cache.prompt_length)
    assert lengths == [20, 20, 20, 23, 23, 23, 26]


def test_tables_are_made_once_a_forward_and_dropped_after_it(
    llama: PreTrainedModel, tokens: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = XKVCache(llama.config, window=2, min_length=16)
    read(llama, cache, tokens(1, 40))
    rotation: Any = cache.compressor.anatomy.rotation
    calls, tables = [], rotation.tables
    monkeypatch.setattr(rotation, "tables", lambda *args: calls.append(args) or tables(*args))
    read(llama, cache, tokens(1, 1))
    assert len(calls) == 1
    assert cache.compressor._step is None


def test_positions_are_those_the_model_rotated_by(llama: PreTrainedModel, tokens: Draw) -> None:
    ids = tokens(1, 40)
    cache, exact = (
        XKVCache(llama.config, window=5, rank_key=40, rank_value=40, min_length=16),
        DynamicCache(config=llama.config),
    )
    positions = torch.arange(40)[None] * 3 + 5
    with torch.no_grad():
        llama(ids, position_ids=positions, cache=cache)
        llama(ids, position_ids=positions, cache=exact)
    assert cache.compressor.timeline.positions is not None
    assert torch.equal(cache.compressor.timeline.positions.long(), positions)
    keys, _ = cache.compressor.layers[3].states(cache.compressor.tables(cache.compressor.layers[3]))
    torch.testing.assert_close(keys, exact.layers[3].keys, rtol=1e-3, atol=1e-4)
