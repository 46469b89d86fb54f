"""The cache does what transformers' own does, in fewer bytes."""

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
    LeftPadded,
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
    mode: str, kind: str, model_of: Models, tokens: Draw, decode: Decode, storage_bytes: Callable[[Any], int]
) -> None:
    model = model_of(kind)
    cache = XKVCache(model.config, mode=mode, outlier_chunks=2, local_chunks=1, **TIGHT)
    with attention_of(model):
        decode(model, cache, tokens(2, PROMPT), tokens(2, SHORT))
    assert cache.nbytes() == storage_bytes(cache)


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


def test_nothing_outlives_a_forward_that_is_not_counted(
    llama: PreTrainedModel, tokens: Draw, decode: Decode, reachable: Callable[[Any], list[Tensor]]
) -> None:
    cache = XKVCache(llama.config, **TIGHT)
    for ours in (False, True):
        with attention(llama, ours):
            decode(llama, cache, tokens(1, PROMPT), tokens(1, 2))
    counted = {id(tensor) for tensor in cache.tensors()}
    assert {id(tensor) for tensor in reachable(cache)} == counted
