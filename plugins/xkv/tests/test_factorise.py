"""A group's factors are those of its layers' keys before RoPE and of their values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import XKVCache
from separata_xkv.crosslayer_svd import crosslayer_svd_reference
from separata_xkv.group import heads_together
from separata_xkv.rope import rotation_of

Draw = Callable[[int, int], Tensor]
Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]


def test_factors_are_the_joint_svd_of_the_window(
    llama: PreTrainedModel, tokens: Draw, filled: Filled
) -> None:
    exact = filled(llama, tokens(2, 60))
    cache = XKVCache.from_cache(exact, llama.config, rank_key=5, rank_value=7, window=3, min_length=32)
    rotation = rotation_of(llama.config, 8)
    tables = rotation.tables(torch.arange(60).expand(2, -1), 59)
    keys = [heads_together(rotation.unrotate(layer.keys, tables)) for layer in exact.layers[:3]]
    values = [heads_together(layer.values) for layer in exact.layers[:3]]
    group = cache.compressor.groups[0]
    assert group.values is not None
    for found, states, rank in ((group.keys, keys, 5), (group.values, values, 7)):
        reference = crosslayer_svd_reference(states, rank)
        product = found.rows @ torch.cat(found.bases, dim=-1)
        expected = (reference.rows @ torch.cat(reference.bases, dim=-1)).float()
        torch.testing.assert_close(product, expected, rtol=1e-3, atol=1e-3)


def test_compressing_keys_after_rope_would_lose_more(
    llama: PreTrainedModel, tokens: Draw, filled: Filled
) -> None:
    exact = filled(llama, tokens(1, 200))
    # Keys of one direction: rank one before RoPE, and of many directions after it.
    rotation = rotation_of(llama.config, 8)
    tables = rotation.tables(torch.arange(200)[None], 199)
    for layer in exact.layers:
        layer.keys = rotation.rotate(torch.ones(1, 2, 200, 8), tables)
    cache = XKVCache.from_cache(exact, llama.config, rank_key=1, rank_value=1, window=5, min_length=32)
    keys, _ = cache.compressor.layers[2].states(cache.compressor.tables(cache.compressor.layers[2]))
    torch.testing.assert_close(keys, exact.layers[2].keys, rtol=1e-4, atol=1e-4)
    rotated = crosslayer_svd_reference([heads_together(layer.keys) for layer in exact.layers], 1)
    lost = rotated.rows @ rotated.bases[2] - heads_together(exact.layers[2].keys)
    assert float(lost.square().mean()) > 0.1


def test_a_window_of_one_is_each_layers_own_svd(llama: PreTrainedModel, tokens: Draw, filled: Filled) -> None:
    exact = filled(llama, tokens(1, 60))
    cache = XKVCache.from_cache(exact, llama.config, rank_key=4, rank_value=4, window=1, min_length=32)
    for index, group in enumerate(cache.compressor.groups):
        values = heads_together(exact.layers[index].values)
        left, singular, right = torch.linalg.svd(values, full_matrices=False)
        truncated = (left[..., :4] * singular[..., None, :4]) @ right[..., :4, :]
        assert group.values is not None
        torch.testing.assert_close(group.values.rows @ group.values.bases[0], truncated, rtol=1e-3, atol=1e-3)
