"""Rows and lengths of a compressed cache change as those of transformers' own do: beams, crops, chunks, turns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import XKVCache, attention_of

Draw = Callable[[int, int], Tensor]
Decode = Callable[..., Tensor]
Models = Callable[[str], PreTrainedModel]

PROMPT, SHORT = 70, 2
WHOLE = {"rank_key": 999, "window": 3, "min_length": 32}
TIGHT = {"ratio": 3, "window": 2, "min_length": 32}
# float32 logits of order 2 after five layers; the exact cache itself differs by 1e-5 between attention kernels.
CLOSE = {"rtol": 0.0, "atol": 1e-4}


def test_rows_of_a_batch_do_not_mix(llama: PreTrainedModel, tokens: Draw, decode: Decode) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    together = decode(llama, XKVCache(llama.config, **TIGHT), prompt, continuation)
    for row in range(2):
        cache = XKVCache(llama.config, **TIGHT)
        alone = decode(llama, cache, prompt[row : row + 1], continuation[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, **CLOSE)


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
def test_rows_can_be_reordered_selected_and_repeated(
    mode: str, llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    settings = {**TIGHT, "mode": mode, "outlier_chunks": 2, "local_chunks": 1, "budget": 16}
    prompt, continuation, more = tokens(3, PROMPT), tokens(3, SHORT), tokens(3, 2)
    with attention_of(llama):
        cache = XKVCache(llama.config, **settings)
        decode(llama, cache, prompt, continuation)
        straight = copy.deepcopy(cache)
        expected = decode(llama, straight, more[:, :1], more[:, 1:])
        order = torch.tensor([2, 0, 1])
        cache.reorder_cache(order)
        kept = torch.tensor([0, 2])
        cache.batch_select_indices(kept)
        cache.batch_repeat_interleave(2)
        rows = order[kept].repeat_interleave(2)
        found = decode(llama, cache, more[rows, :1], more[rows, 1:])
    torch.testing.assert_close(found, expected[rows], **CLOSE)


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
def test_cropping_the_tail_brings_the_prompt_back(
    mode: str, llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation, more = tokens(2, PROMPT), tokens(2, SHORT), tokens(2, 3)
    cache = XKVCache(llama.config, mode=mode, **TIGHT)
    with attention_of(llama):
        decode(llama, cache, prompt, more)
        fresh = copy.deepcopy(cache)
        decode(llama, cache, continuation[:, :1], continuation[:, 1:])
        cache.crop(0)
        cache.crop(-SHORT)
        assert cache.get_seq_length() == PROMPT + 3
        found, expected = (decode(llama, used, more[:, :1], more[:, 1:]) for used in (cache, fresh))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_cropping_into_the_prompt_is_the_shorter_prompt_at_full_rank(
    mode: str, llama: PreTrainedModel, tokens: Draw, decode: Decode, storage_bytes: Callable[[Any], int]
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    settings = {**WHOLE, "mode": mode, "outlier_chunks": 2, "local_chunks": 1}
    cache = XKVCache(llama.config, **settings)
    with attention_of(llama):
        decode(llama, cache, prompt, continuation)
        cache.crop(-SHORT - 13)
        assert (cache.prompt_length, cache.get_seq_length()) == (PROMPT - 13, PROMPT - 13)
        assert cache.nbytes() == storage_bytes(cache)
        found = decode(llama, cache, continuation[:, :1], continuation[:, 1:])
    shorter = DynamicCache(config=llama.config)
    with torch.no_grad():
        llama(prompt[:, : PROMPT - 13], cache=shorter)
    torch.testing.assert_close(
        found, decode(llama, shorter, continuation[:, :1], continuation[:, 1:]), **CLOSE
    )


@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_latents_can_be_cropped_too(model_of: Models, tokens: Draw, decode: Decode) -> None:
    model, prompt, continuation = model_of("deepseek"), tokens(2, PROMPT), tokens(2, SHORT)
    cache = XKVCache(model.config, rank_key=999, window=3, min_length=32)
    decode(model, cache, prompt, continuation)
    cache.crop(-SHORT - 4)
    assert cache.layers[0].values.shape[-2] == cache.get_seq_length() == PROMPT - 4
    shorter = DynamicCache(config=model.config)
    with torch.no_grad():
        model(prompt[:, : PROMPT - 4], cache=shorter)
    found, expected = (
        decode(model, used, continuation[:, :1], continuation[:, 1:]) for used in (cache, shorter)
    )
    torch.testing.assert_close(found, expected, **CLOSE)


def test_cropping_and_resetting_everything_leaves_an_empty_cache(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    cache = XKVCache(llama.config, **TIGHT)
    expected = decode(llama, cache, prompt, continuation)
    empty = XKVCache(llama.config, **TIGHT).nbytes()
    for clear in (lambda: cache.crop(-1000), cache.reset):
        clear()
        assert (cache.get_seq_length(), cache.prompt_length) == (0, 0)
        assert cache.nbytes() == empty
        assert torch.equal(decode(llama, cache, prompt, continuation), expected)


def test_cropping_to_a_length_is_refused_as_in_transformers(llama: PreTrainedModel) -> None:
    with pytest.raises(ValueError, match="positive value"):
        XKVCache(llama.config).crop(3)


def test_masks_and_lengths_count_compressed_and_exact_tokens(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    cache = XKVCache(llama.config, **TIGHT)
    assert cache.get_seq_length() == 0
    decode(llama, cache, tokens(1, PROMPT), tokens(1, SHORT))
    assert cache.get_seq_length() == PROMPT + SHORT
    assert cache.get_mask_sizes(4, 0) == (PROMPT + SHORT + 4, 0)
    assert cache.get_max_length() == -1
    assert cache.is_croppable
    assert not cache.is_compileable


def test_a_prompt_in_chunks_stays_exact_until_the_first_generated_token(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    cache, exact = XKVCache(llama.config, chunked_prefill=True, **TIGHT), DynamicCache(config=llama.config)
    with torch.no_grad():
        for piece in prompt.split(25, dim=1):
            found, expected = llama(piece, cache=cache).logits, llama(piece, cache=exact).logits
            torch.testing.assert_close(found, expected, **CLOSE)
    assert cache.prompt_length == 0
    found = decode(llama, cache, continuation[:, :1], continuation[:, 1:])
    assert cache.prompt_length == PROMPT
    whole = XKVCache.from_cache(exact, llama.config, **TIGHT)
    # The token that ended the prompt attended to it exactly; all later ones to its factors.
    assert torch.equal(found[:, :1], decode(llama, exact, continuation[:, :1], continuation[:, :0]))
    assert len(whole.compressor.groups) == len(cache.compressor.groups)
    for ours, theirs in zip(cache.compressor.groups, whole.compressor.groups, strict=True):
        assert torch.equal(ours.keys.rows, theirs.keys.rows)


def test_generate_can_prefill_in_chunks(llama: PreTrainedModel, tokens: Draw) -> None:
    prompt = tokens(2, PROMPT)
    cache = XKVCache(llama.config, chunked_prefill=True, **TIGHT)
    llama.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        cache=cache,
        max_new_tokens=4,
        do_sample=False,
        prefill_chunk_size=16,
    )
    assert cache.prompt_length == PROMPT
    assert cache.get_seq_length() == PROMPT + 3


def test_a_second_turn_is_exact_behind_a_compressed_first(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    cache = XKVCache(llama.config, **TIGHT)
    decode(llama, cache, tokens(2, PROMPT), tokens(2, SHORT))
    before = [group.keys.rows for group in cache.compressor.groups]
    decode(llama, cache, tokens(2, 40), tokens(2, SHORT))
    assert cache.prompt_length == PROMPT
    assert all(a is b.keys.rows for a, b in zip(before, cache.compressor.groups, strict=True))


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_the_tail_can_be_compressed_again_and_again(
    mode: str, llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, 5)
    settings = {**WHOLE, "mode": mode, "outlier_chunks": 2, "local_chunks": 1, "recompress_every": 2}
    cache = XKVCache(llama.config, **settings)
    with attention_of(llama):
        found = decode(llama, cache, prompt, continuation)
    assert cache.prompt_length == PROMPT + 4
    torch.testing.assert_close(
        found, decode(llama, DynamicCache(config=llama.config), prompt, continuation), **CLOSE
    )
