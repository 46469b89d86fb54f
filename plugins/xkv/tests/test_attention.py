"""Attention over compressed states rebuilds what it needs and no more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, Gemma2Config, Gemma2ForCausalLM, PreTrainedModel

from separata_xkv import XKVCache, attention_of
from separata_xkv.attention import dense_attention, selective_attention
from separata_xkv.crosslayer_svd import Factors
from separata_xkv.errors import AttentionNotSet, UnsupportedModel

Draw = Callable[[int, int], Tensor]
Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]
Decode = Callable[..., Tensor]

PROMPT = 96
SETTINGS: dict[str, Any] = {"ratio": 3, "window": 2, "min_length": 32, "chunk": 8}
CLOSE = {"rtol": 0.0, "atol": 1e-4}


@pytest.fixture
def exact(llama: PreTrainedModel, tokens: Draw, filled: Filled) -> DynamicCache:
    return filled(llama, tokens(2, PROMPT))


@pytest.mark.parametrize("budget", [PROMPT, 4 * PROMPT])
def test_selecting_everything_is_attending_to_everything(
    budget: int, llama: PreTrainedModel, tokens: Draw, exact: DynamicCache
) -> None:
    token, logits = tokens(2, 1), []
    for mode in ("dense", "sr"):
        cache = XKVCache.from_cache(
            exact, llama.config, mode=mode, budget=budget, outlier_chunks=0, local_chunks=0, **SETTINGS
        )
        with attention_of(llama), torch.no_grad():
            logits.append(llama(token, cache=cache).logits)
    torch.testing.assert_close(logits[1], logits[0], **CLOSE)


@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_outliers_and_local_tokens_are_attended_to_without_being_selected(
    llama: PreTrainedModel, tokens: Draw, exact: DynamicCache, decode: Decode
) -> None:
    # All but 4 of 12 chunks are outliers or local, and the budget selects those 4.
    options: dict[str, Any] = {"outlier_chunks": 5, "local_chunks": 3, "budget": 32, "mode": "sr"}
    cache = XKVCache.from_cache(exact, llama.config, rank_key=999, **{**SETTINGS, **options})
    continuation = tokens(2, 4)
    with attention_of(llama):
        found = decode(llama, cache, continuation[:, :1], continuation[:, 1:])
    torch.testing.assert_close(found, decode(llama, exact, continuation[:, :1], continuation[:, 1:]), **CLOSE)


def test_a_small_budget_changes_the_result(llama: PreTrainedModel, tokens: Draw, exact: DynamicCache) -> None:
    token, logits = tokens(2, 1), []
    for budget in (8, PROMPT):
        cache = XKVCache.from_cache(
            exact, llama.config, mode="sr", budget=budget, outlier_chunks=0, local_chunks=0, **SETTINGS
        )
        with attention_of(llama), torch.no_grad():
            logits.append(llama(token, cache=cache).logits)
    assert float((logits[0] - logits[1]).abs().max()) > 0.01


class Counted(torch.Tensor):
    """A factor that counts the rows of itself that are read."""

    read = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and isinstance(args[0], cls):
            cls.read += result.numel() // result.shape[-1]
        return result


@pytest.mark.parametrize("mode", ["sr", "sr-offload"])
def test_only_selected_rows_are_read(
    mode: str, llama: PreTrainedModel, exact: DynamicCache, generator: torch.Generator
) -> None:
    cache = XKVCache.from_cache(
        exact, llama.config, mode=mode, budget=16, outlier_chunks=1, local_chunks=1, **SETTINGS
    )
    layer = cache.compressor.layers[0]
    assert layer.group is not None
    Counted.read = 0
    watched = layer.group.keys.rows.as_subclass(Counted)
    layer.group.keys = Factors(watched, layer.group.keys.bases)
    if layer.group.values is not None:
        values = layer.group.values
        layer.group.values = Factors(values.rows.as_subclass(Counted), values.bases)
    selective_attention(torch.randn(2, 4, 1, 8, generator=generator), layer, None, 0.3)
    sides = 1 if mode == "sr-offload" else 2
    # Two sequences and two heads select 16 tokens each.
    assert Counted.read == sides * 2 * 2 * 16


def test_padding_is_neither_selected_nor_attended_to(
    llama: PreTrainedModel, exact: DynamicCache, generator: torch.Generator
) -> None:
    query = torch.randn(2, 4, 1, 8, generator=generator)
    mask = torch.ones(2, 1, 1, PROMPT, dtype=torch.bool)
    mask[1, ..., :43] = False
    settings: dict[str, Any] = {**SETTINGS, "outlier_chunks": 0, "local_chunks": 0}
    cache = XKVCache.from_cache(exact, llama.config, mode="sr", budget=PROMPT, **settings)
    layer = cache.compressor.layers[0]
    tables = cache.compressor.tables(layer)
    keys, values = layer.states(tables)
    bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, keys.repeat_interleave(2, 1), values.repeat_interleave(2, 1), attn_mask=mask, scale=0.5
    )
    for given in (mask, bias):
        found = selective_attention(query, layer, given, 0.5)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        layer.selective, selective = None, layer.selective
        torch.testing.assert_close(
            dense_attention(query, layer, tables, given, 0.5), expected, rtol=1e-4, atol=1e-5
        )
        layer.selective = selective
    # With room for seven chunks, exactly those that hold a token of the shorter prompt are worth selecting.
    cache.compressor.settings = cache.compressor.settings.__class__(
        **{**settings, "mode": "sr", "budget": 56}
    )
    found = selective_attention(query, layer, mask, 0.5)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-4, atol=1e-5)


def test_several_queries_see_only_what_came_before_them(
    llama: PreTrainedModel, tokens: Draw, exact: DynamicCache, decode: Decode
) -> None:
    continuation = tokens(2, 6)
    caches = [XKVCache.from_cache(exact, llama.config, **SETTINGS) for _ in range(2)]
    with attention_of(llama), torch.no_grad():
        together = llama(continuation, cache=caches[0]).logits
        one_by_one = decode(llama, caches[1], continuation[:, :1], continuation[:, 1:])
    torch.testing.assert_close(together, one_by_one, **CLOSE)


@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_several_queries_attend_to_the_whole_prompt_in_selective_modes(
    llama: PreTrainedModel, tokens: Draw, exact: DynamicCache
) -> None:
    cache = XKVCache.from_cache(
        exact, llama.config, rank_key=999, mode="sr", budget=8, **SETTINGS | {"ratio": 1}
    )
    continuation = tokens(2, 6)
    with torch.no_grad():
        with attention_of(llama):
            found = llama(continuation, cache=cache).logits
        torch.testing.assert_close(found, llama(continuation, cache=exact).logits, **CLOSE)


def test_the_models_own_attention_comes_back(llama: PreTrainedModel) -> None:
    before = llama.config._attn_implementation
    with attention_of(llama):
        assert llama.config._attn_implementation == "separata_xkv"
    assert llama.config._attn_implementation == before
    with pytest.raises(ZeroDivisionError), attention_of(llama):
        _ = 1 / 0
    assert llama.config._attn_implementation == before


def test_deferred_states_never_reach_another_attention(
    llama: PreTrainedModel, tokens: Draw, exact: DynamicCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = XKVCache.from_cache(exact, llama.config, **SETTINGS)
    # A config that is not the one the attention modules hold, as after a careless copy.
    monkeypatch.setattr(type(cache.compressor.anatomy), "defers", True)
    with torch.no_grad(), pytest.raises(AttentionNotSet, match="compressed states"):
        llama(tokens(2, 1), cache=cache)


def test_soft_capped_logits_are_refused(tokens: Draw) -> None:
    config = Gemma2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=32,
        vocab_size=300,
        eos_token_id=None,
    )
    model = Gemma2ForCausalLM(config).eval()
    with attention_of(model), torch.no_grad(), pytest.raises(UnsupportedModel, match="softcap"):
        model(tokens(1, 40))
