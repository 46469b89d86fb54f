"""A layer serves exact and rebuilt tokens as one sequence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import XKVCache, attention_of

Draw = Callable[[int, int], Tensor]
Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_its_states_are_those_of_the_exact_cache_at_full_rank(
    mode: str, llama: PreTrainedModel, tokens: Draw, filled: Filled
) -> None:
    exact = filled(llama, tokens(2, 60))
    cache = XKVCache.from_cache(exact, llama.config, rank_key=999, window=2, min_length=32, mode=mode)
    with torch.no_grad(), attention_of(llama):
        more = tokens(2, 1)
        llama(more, cache=cache)
        llama(more, cache=exact)
    for index, layer in enumerate(cache.compressor.layers):
        keys, values = layer.states(cache.compressor.tables(layer))
        assert (layer.prompt_length, layer.tail_length, layer.get_seq_length()) == (60, 1, 61)
        torch.testing.assert_close(keys, exact.layers[index].keys, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(values, exact.layers[index].values, rtol=1e-3, atol=1e-4)


def test_exact_tokens_are_bit_for_bit_those_of_the_model_in_selective_modes(
    llama: PreTrainedModel, tokens: Draw, filled: Filled
) -> None:
    exact = filled(llama, tokens(2, 60))
    cache = XKVCache.from_cache(
        exact, llama.config, ratio=8, window=2, min_length=32, mode="sr", outlier_chunks=1, local_chunks=2
    )
    layer = cache.compressor.layers[0]
    keys, values = layer.states(cache.compressor.tables(layer))
    assert layer.selective is not None
    kept = torch.zeros(2, 2, 60, dtype=torch.bool).scatter(2, layer.selective.exact_rows(), True)
    assert torch.equal(keys[kept], exact.layers[0].keys[kept])
    assert torch.equal(values[kept], exact.layers[0].values[kept])
    assert not torch.isclose(keys[~kept], exact.layers[0].keys[~kept], rtol=1e-4).all()


def test_offloaded_values_are_fetched_by_row(llama: PreTrainedModel, tokens: Draw, filled: Filled) -> None:
    exact = filled(llama, tokens(2, 60))
    cache = XKVCache.from_cache(exact, llama.config, window=2, min_length=32, mode="sr-offload")
    rows = torch.tensor([3, 50, 7]).expand(2, 2, 3)
    assert torch.equal(cache.compressor.layers[1].values_at(rows), exact.layers[1].values[:, :, [3, 50, 7]])


def test_cropping_a_tail_frees_it(llama: PreTrainedModel, tokens: Draw) -> None:
    cache = XKVCache(llama.config, min_length=999)
    with torch.no_grad():
        llama(tokens(1, 40), cache=cache)
    cache.crop(-30)
    layer = cache.compressor.layers[0]
    assert layer.keys.untyped_storage().nbytes() == 10 * 16 * 4
