"""The cache does what transformers' own does, in fewer bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
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
from separata_xkv.layer import XKVLayer
from separata_xkv.ranks import factor_elements

Draw = Callable[[int, int], Tensor]
Decode = Callable[..., Tensor]
Models = Callable[[str], PreTrainedModel]

PROMPT, SHORT = 70, 2
WHOLE = {"rank_key": 999, "window": 3, "min_length": 32}
TIGHT = {"ratio": 3, "window": 2, "min_length": 32}
# float32 logits of order 2 after five layers; the exact cache itself differs by 1e-5 between attention kernels.
CLOSE = {"rtol": 0.0, "atol": 1e-4}


def attention(model: PreTrainedModel, ours: bool) -> AbstractContextManager[Any]:
    return attention_of(model) if ours else nullcontext()


def reachable(value: Any, seen: set[int]) -> Iterator[Tensor]:
    """Every tensor that can be reached from an object, through any attribute or container."""
    if id(value) in seen or isinstance(value, type) or (callable(value) and not hasattr(value, "__dict__")):
        return
    seen.add(id(value))
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    else:
        inside = list(getattr(value, "__dict__", {}).values())
        inside += [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    for item in inside:
        yield from reachable(item, seen)


def storage_bytes(tensors: Iterator[Tensor]) -> int:
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        (kind, False)
        for kind in (
            "llama",
            "qwen3",
            "phi",
            "glm4",
            "cohere",
            "yarn",
            "dynamic",
            "gemma3",
            "gpt2",
            "deepseek",
        )
    ]
    + [(kind, True) for kind in ("llama", "phi", "gemma3", "gpt2", "deepseek")],
)
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_at_full_rank_the_logits_are_those_of_the_exact_cache(
    kind: str, ours: bool, model_of: Models, tokens: Draw, decode: Decode
) -> None:
    model, prompt, continuation = model_of(kind), tokens(2, PROMPT), tokens(2, SHORT)
    exact = decode(model, DynamicCache(config=model.config), prompt, continuation)
    cache = XKVCache(model.config, **WHOLE)
    with attention(model, ours):
        found = decode(model, cache, prompt, continuation)
    assert cache.prompt_length == PROMPT
    torch.testing.assert_close(found, exact, **CLOSE)


def test_a_truncated_cache_differs_and_its_error_falls_with_the_ratio(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    exact = decode(llama, DynamicCache(config=llama.config), prompt, continuation)[:, 1:]
    errors = []
    for ratio in (1, 8):
        cache = XKVCache(llama.config, ratio=ratio, window=5, min_length=32)
        errors.append(float((decode(llama, cache, prompt, continuation)[:, 1:] - exact).square().mean()))
    assert 1e-4 < errors[0] < errors[1]


@pytest.mark.parametrize("queries", [1, SHORT, 20])
def test_absorbed_values_are_rebuilt_values(
    queries: int, llama: PreTrainedModel, tokens: Draw, filled: Callable[..., DynamicCache]
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, queries)
    logits = []
    for ours in (False, True):
        cache = XKVCache.from_cache(filled(llama, prompt), llama.config, **TIGHT)
        with attention(llama, ours), torch.no_grad():
            logits.append(llama(continuation, cache=cache).logits)
    torch.testing.assert_close(logits[1], logits[0], **CLOSE)


def test_prompts_are_attended_to_exactly_before_they_are_compressed(
    llama: PreTrainedModel, tokens: Draw
) -> None:
    prompt = tokens(2, PROMPT)
    with torch.no_grad():
        exact = llama(prompt, cache=DynamicCache(config=llama.config)).logits
        found = llama(prompt, cache=XKVCache(llama.config, **TIGHT)).logits
    assert torch.equal(found, exact)


def test_no_more_layers_than_a_window_are_exact_at_once(
    llama: PreTrainedModel, tokens: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, exact = XKVCache(llama.config, **TIGHT), []
    update = XKVLayer.update

    def watched(self: XKVLayer, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        served = update(self, *args, **kwargs)
        exact.append(sum(layer.tail_length > 0 for layer in cache.layers))
        return served

    monkeypatch.setattr(XKVLayer, "update", watched)
    with torch.no_grad():
        llama(tokens(1, PROMPT), cache=cache)
    assert exact == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_bytes_are_those_of_every_tensor_that_can_be_reached(
    mode: str, kind: str, model_of: Models, tokens: Draw, decode: Decode
) -> None:
    model = model_of(kind)
    cache = XKVCache(model.config, mode=mode, outlier_chunks=2, local_chunks=1, **TIGHT)
    with attention_of(model):
        decode(model, cache, tokens(2, PROMPT), tokens(2, SHORT))
    assert cache.nbytes() == storage_bytes(reachable(cache, set()))


def test_bytes_follow_the_formula(llama: PreTrainedModel, tokens: Draw, decode: Decode) -> None:
    cache = XKVCache(llama.config, **TIGHT)
    decode(llama, cache, tokens(2, PROMPT), tokens(2, SHORT))
    expected = 0
    for layers in (2, 2, 1):
        widths = [16] * layers
        # ratio = 2WLd / ((L + Wd)(r_k + r_v)) with r_v = 1.5 r_k, each rounded down.
        total = 2 * PROMPT * sum(widths) / (3 * (PROMPT + sum(widths)))
        ranks = int(0.4 * total), min(int(0.6 * total), sum(widths))
        expected += 2 * 4 * sum(factor_elements(PROMPT, widths, rank) for rank in ranks)
    tail = 5 * 2 * 2 * SHORT * 16 * 4
    positions = 2 * (PROMPT + SHORT) * 4
    frequencies = sum(tensor.nbytes for tensor in cache.compressor.anatomy.rotation.tensors())
    assert cache.nbytes() == expected + tail + positions + frequencies
    assert cache.exact_nbytes() == 5 * 2 * 2 * (PROMPT + SHORT) * 16 * 4


def test_offloaded_values_can_be_left_out_of_the_count(
    llama: PreTrainedModel, tokens: Draw, filled: Callable[..., DynamicCache]
) -> None:
    cache = XKVCache.from_cache(filled(llama, tokens(2, PROMPT)), llama.config, mode="sr-offload", **TIGHT)
    assert cache.nbytes() - cache.nbytes(offloaded=False) == 5 * 2 * PROMPT * 16 * 4


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_generation_is_that_of_the_exact_cache_at_full_rank(
    beams: int, llama: PreTrainedModel, tokens: Draw
) -> None:
    options: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "num_beams": beams}
    prompt = tokens(2, PROMPT)
    mask = torch.ones_like(prompt)
    expected = llama.generate(prompt, attention_mask=mask, **options)
    found = llama.generate(prompt, attention_mask=mask, cache=XKVCache(llama.config, **WHOLE), **options)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("mode", ["dense", "sr"])
@pytest.mark.filterwarnings("ignore::separata_xkv.errors.RankClamped")
def test_left_padded_prompts_generate_as_without_padding(
    mode: str, llama: PreTrainedModel, tokens: Draw
) -> None:
    options: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False}
    prompts = [tokens(1, PROMPT), tokens(1, PROMPT - 21)]
    padded = torch.cat([torch.nn.functional.pad(ids, (PROMPT - ids.shape[1], 0)) for ids in prompts])
    settings = {**WHOLE, "mode": mode, "outlier_chunks": 1, "local_chunks": 1}
    with attention_of(llama):
        together = llama.generate(
            padded, attention_mask=(padded != 0).long(), cache=XKVCache(llama.config, **settings), **options
        )
        for row, ids in enumerate(prompts):
            alone = llama.generate(ids, attention_mask=torch.ones_like(ids), **options)
            assert torch.equal(together[row, PROMPT:], alone[0, ids.shape[1] :])


def test_padding_takes_no_part_in_the_factors(llama: PreTrainedModel, tokens: Draw) -> None:
    prompt = tokens(1, PROMPT - 20)
    alone, padded = (
        XKVCache(llama.config, rank_key=6, **_windows()),
        XKVCache(llama.config, rank_key=6, **_windows()),
    )
    ids = torch.cat([torch.nn.functional.pad(prompt, (20, 0)), tokens(1, PROMPT)])
    mask = (ids != 0).long()
    positions = (mask.cumsum(-1) - 1).clamp_min(0)
    with torch.no_grad():
        llama(prompt, cache=alone)
        llama(ids, attention_mask=mask, position_ids=positions, cache=padded)
    for ours, theirs in zip(alone.compressor.groups, padded.compressor.groups, strict=True):
        assert (theirs.keys.rows[0, :20] == 0).all()
        products = [group.keys.rows[:1] @ group.keys.bases[0][:1] for group in (ours, theirs)]
        torch.testing.assert_close(products[1][:, 20:], products[0], rtol=0, atol=1e-3)


def _windows() -> dict[str, Any]:
    return {"window": 5, "min_length": 32}


def test_left_padding_that_nothing_masks_is_refused(llama: PreTrainedModel, tokens: Draw) -> None:
    ids = torch.cat([torch.nn.functional.pad(tokens(1, PROMPT - 20), (20, 0)), tokens(1, PROMPT)])
    with torch.no_grad(), pytest.raises(LeftPadded, match="row 0"):
        llama(ids, cache=XKVCache(llama.config, **TIGHT))
    trusting = XKVCache(llama.config, trust_positions=True, **TIGHT)
    with torch.no_grad():
        llama(ids, cache=trusting)
    assert trusting.prompt_length == PROMPT


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
    mode: str, llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    prompt, continuation = tokens(2, PROMPT), tokens(2, SHORT)
    settings = {**WHOLE, "mode": mode, "outlier_chunks": 2, "local_chunks": 1}
    cache = XKVCache(llama.config, **settings)
    with attention_of(llama):
        decode(llama, cache, prompt, continuation)
        cache.crop(-SHORT - 13)
        assert (cache.prompt_length, cache.get_seq_length()) == (PROMPT - 13, PROMPT - 13)
        assert cache.nbytes() == storage_bytes(reachable(cache, set()))
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


def test_short_prompts_stay_exact(llama: PreTrainedModel, tokens: Draw, decode: Decode) -> None:
    prompt, continuation = tokens(2, 31), tokens(2, SHORT)
    cache = XKVCache(llama.config, **TIGHT)
    found = decode(llama, cache, prompt, continuation)
    assert cache.prompt_length == 0
    assert torch.equal(found, decode(llama, DynamicCache(config=llama.config), prompt, continuation))


def test_likeness_can_decide_the_groups(
    llama: PreTrainedModel, tokens: Draw, filled: Callable[..., DynamicCache]
) -> None:
    exact = filled(llama, tokens(2, PROMPT))
    # Random layers are not alike; three copies of one layer are.
    for layer in (1, 2):
        exact.layers[layer].keys, exact.layers[layer].values = exact.layers[0].keys, exact.layers[0].values
    cache = XKVCache.from_cache(
        exact, llama.config, grouping="cka", similarity=0.9, window=4, min_length=32, trust_positions=True
    )
    assert [group.layers for group in cache.compressor.groups] == [[0, 1, 2], [3], [4]]


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


def test_nothing_outlives_a_forward_that_is_not_counted(
    llama: PreTrainedModel, tokens: Draw, decode: Decode
) -> None:
    cache = XKVCache(llama.config, **TIGHT)
    for ours in (False, True):
        with attention(llama, ours):
            decode(llama, cache, tokens(1, PROMPT), tokens(1, 2))
    counted = {id(tensor) for tensor in cache.tensors()}
    assert {id(tensor) for tensor in reachable(cache, set())} == counted
