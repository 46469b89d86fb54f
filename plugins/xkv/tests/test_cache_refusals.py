"""An existing cache is taken as it is; what can't be compressed is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import XKVCache, attention_of
from separata_xkv.errors import (
    AttentionNotSet,
    CacheMismatch,
    GradientsRequired,
    InvalidSetting,
    LeftPadded,
    NonFiniteStates,
    RankClamped,
    UnsupportedModel,
)

Draw = Callable[[int, int], Tensor]
Decode = Callable[..., Tensor]
Models = Callable[[str], PreTrainedModel]

PROMPT, SHORT = 70, 2
TIGHT = {"ratio": 3, "window": 2, "min_length": 32}
# float32 logits of order 2 after five layers; the exact cache itself differs by 1e-5 between attention kernels.
CLOSE = {"rtol": 0.0, "atol": 1e-4}


def attention(model: PreTrainedModel, ours: bool) -> AbstractContextManager[Any]:
    return attention_of(model) if ours else nullcontext()


def test_an_existing_cache_is_compressed_and_left_alone(
    llama: PreTrainedModel, tokens: Draw, filled: Callable[..., DynamicCache], decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    exact = filled(llama, prompt)
    before = [layer.keys.clone() for layer in exact.layers]
    cache = XKVCache.from_cache(exact, llama, **TIGHT)
    own = XKVCache(llama.config, **TIGHT)
    expected = decode(llama, own, prompt, continuation)[:, 1:]
    found = decode(llama, cache, continuation[:, :1], continuation[:, 1:])
    torch.testing.assert_close(found, expected, **CLOSE)
    assert all(torch.equal(a, b.keys) for a, b in zip(before, exact.layers, strict=True))


def test_an_existing_padded_cache_needs_its_mask(llama: PreTrainedModel, tokens: Draw) -> None:
    ids = torch.cat([torch.nn.functional.pad(tokens(1, PROMPT - 20), (20, 0)), tokens(1, PROMPT)])
    mask = (ids != 0).long()
    exact = DynamicCache(config=llama.config)
    with torch.no_grad():
        llama(ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp_min(0), cache=exact)
    with pytest.raises(LeftPadded):
        XKVCache.from_cache(exact, llama.config, **TIGHT)
    cache = XKVCache.from_cache(exact, llama.config, attention_mask=mask, **TIGHT)
    padding = cache.compressor.timeline.padding(PROMPT)
    assert padding is not None
    assert torch.equal(padding, mask == 0)


def test_foreign_and_empty_caches_are_refused(
    llama: PreTrainedModel, model_of: Models, tokens: Draw, filled: Callable[..., DynamicCache]
) -> None:
    with pytest.raises(CacheMismatch, match="with 0 tokens"):
        XKVCache.from_cache(DynamicCache(config=llama.config), llama.config)
    with pytest.raises(CacheMismatch, match="has 0 layers"):
        XKVCache.from_cache(DynamicCache(), llama.config)
    gemma = model_of("gemma3")
    with pytest.raises(CacheMismatch, match="DynamicSlidingWindowLayer"):
        XKVCache.from_cache(filled(gemma, tokens(1, PROMPT)), llama.config)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_states_that_are_no_numbers_name_their_layer(
    bad: float, llama: PreTrainedModel, tokens: Draw, filled: Callable[..., DynamicCache]
) -> None:
    exact = filled(llama, tokens(1, PROMPT))
    exact.layers[3].values[0, 1, 9, 2] = bad
    with pytest.raises(NonFiniteStates, match="values of layer 3"):
        XKVCache.from_cache(exact, llama.config, **TIGHT)


def test_gradients_are_refused(llama: PreTrainedModel, tokens: Draw) -> None:
    embedded = llama.get_input_embeddings()(tokens(1, PROMPT)).requires_grad_()
    with pytest.raises(GradientsRequired, match="layer 0"):
        llama(inputs_embeds=embedded, cache=XKVCache(llama.config, **TIGHT))


def test_a_window_wider_than_the_model_is_refused(llama: PreTrainedModel) -> None:
    with pytest.raises(InvalidSetting, match="window is 6, and the model has 5 layers"):
        XKVCache(llama.config, window=6)


def test_ranks_beyond_the_prompt_are_clamped_with_a_warning(llama: PreTrainedModel, tokens: Draw) -> None:
    with torch.no_grad(), pytest.warns(RankClamped, match="rank_key is 60"):
        llama(
            tokens(1, 40), cache=XKVCache(llama.config, rank_key=60, rank_value=40, window=5, min_length=32)
        )


def test_selective_modes_need_their_attention(llama: PreTrainedModel, tokens: Draw) -> None:
    with torch.no_grad(), pytest.raises(AttentionNotSet, match="mode is 'sr'"):
        llama(tokens(1, PROMPT), cache=XKVCache(llama.config, mode="sr", **TIGHT))


def test_selective_modes_refuse_latents(model_of: Models, tokens: Draw) -> None:
    model = model_of("deepseek")
    with attention_of(model), torch.no_grad(), pytest.raises(UnsupportedModel, match="caches a latent"):
        model(tokens(1, PROMPT), cache=XKVCache(model.config, mode="sr", **TIGHT))
