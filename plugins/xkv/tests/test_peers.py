from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv.evaluation import held_bytes
from separata_xkv.peers import KIVICache, MiniCache, fp8_cache

Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]
Tokens = Callable[[int, int], Tensor]


@pytest.mark.parametrize("kind", ["kivi", "minicache"])
@torch.no_grad()
def test_logits_are_those_of_an_exact_cache_of_the_rebuilt_states(
    llama: PreTrainedModel, filled: Filled, tokens: Tokens, kind: str
) -> None:
    exact = filled(llama, tokens(2, 64))
    cache = KIVICache.from_cache(exact, group=8) if kind == "kivi" else MiniCache.from_cache(exact)
    rebuilt = DynamicCache(config=llama.config)
    for index, layer in enumerate(cache.layers):
        rebuilt.update(*layer.rebuild(), index)
    assert cache.get_seq_length() == 64
    for count in (3, 1):
        ids = tokens(2, count)
        assert torch.equal(llama(ids, cache=cache).logits, llama(ids, cache=rebuilt).logits)
    assert cache.get_seq_length() == 68


def test_fewer_bits_err_more(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 64))
    errors = []
    for bits in (4, 3, 2, 1):
        cache = KIVICache.from_cache(exact, key_bits=bits, value_bits=bits, group=8)
        pairs = zip(cache.layers, exact.layers, strict=True)
        errors.append(sum(float((ours.rebuild()[0] - theirs.keys).square().sum()) for ours, theirs in pairs))
    assert errors == sorted(errors)


def test_bytes_of_quantised_caches_follow_from_their_bits(
    llama: PreTrainedModel, filled: Filled, tokens: Tokens
) -> None:
    exact = filled(llama, tokens(1, 70))
    cache = KIVICache.from_cache(exact, key_bits=2, value_bits=4, group=8)
    numbers = 5 * 2 * 8  # layers, heads, channels of a token
    # 64 tokens of keys in groups of 8, 6 exact ones in float32, 70 tokens of values; scale and offset take 4 bytes.
    keys = 64 * numbers * 2 // 8 + 64 * numbers // 8 * 4 + 6 * numbers * 4
    values = 70 * numbers * 4 // 8 + 70 * numbers // 8 * 4
    assert held_bytes(cache) == keys + values


def test_keys_that_fill_no_group_are_exact(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 70))
    keys, _ = KIVICache.from_cache(exact, group=8).layers[0].rebuild()
    assert torch.equal(keys[:, :, 64:], exact.layers[0].keys[:, :, 64:])


@torch.no_grad()
def test_a_minicache_that_keeps_all_tokens_is_exact(
    llama: PreTrainedModel, filled: Filled, tokens: Tokens
) -> None:
    ids = tokens(2, 40)
    exact = llama(ids).logits[:, 32:]
    cache = MiniCache.from_cache(filled(llama, ids[:, :32]), retained=1)
    torch.testing.assert_close(llama(ids[:, 32:], cache=cache).logits, exact, rtol=1e-4, atol=1e-4)


def test_minicache_halves_the_merged_layers(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 64))
    cache = MiniCache.from_cache(exact, start=1, retained=0)
    layer = 2 * 2 * 64 * 8 * 4  # keys and values, heads, tokens, channels, float32
    magnitudes = 2 * 2 * 2 * 64 * 4  # keys and values of both layers, heads, tokens, float32
    # One exact layer, then two pairs.
    assert held_bytes(cache) == layer + 2 * (layer + magnitudes)


def test_fp8_is_transformers_own(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 32))
    cache = fp8_cache(exact, llama.config)
    assert cache.get_seq_length() == 32
    # A byte a number, and one float32 scale for the keys and the values of each layer.
    assert held_bytes(cache) == held_bytes(exact) // 4 + 2 * 5 * 4
    first, nothing = exact.layers[0], exact.layers[0].keys[:, :, :0]
    keys, _ = cache.update(nothing, nothing, 0)
    # E4M3 has three bits after the leading one, and its smallest steps below 2^-6 of the scale.
    torch.testing.assert_close(keys, first.keys, rtol=2**-4, atol=float(first.keys.abs().max()) * 2**-17)


def test_the_exact_cache_stays_as_it_is(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 64))
    before = [layer.keys.clone() for layer in exact.layers]
    for cache in (
        KIVICache.from_cache(exact, group=8),
        MiniCache.from_cache(exact),
        fp8_cache(exact, llama.config),
    ):
        with torch.no_grad():
            llama(tokens(1, 3), cache=cache)
    assert all(torch.equal(layer.keys, keys) for layer, keys in zip(exact.layers, before, strict=True))


def test_beams_are_refused(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    cache = MiniCache.from_cache(filled(llama, tokens(1, 32)))
    with pytest.raises(NotImplementedError):
        cache.reorder_cache(torch.tensor([0]))
    assert not cache.is_croppable
