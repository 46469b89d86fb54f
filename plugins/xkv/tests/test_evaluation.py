from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerFast

from separata_kit_llm import needle
from separata_kit_llm.errors import TextTooShort
from separata_xkv import XKVCache
from separata_xkv.errors import InvalidSetting
from separata_xkv.evaluation import (
    candidates,
    evaluate,
    greedy,
    held_bytes,
    needle_accuracy,
    passages_of,
    prefill,
)
from separata_xkv.peers import KIVICache

TEXT = "".join(
    f"On day {day} the ships came in with the tide, {day * 7} of them, and left again.\n"
    for day in range(120)
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE of the tiny models' vocabulary."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(tokenizer_object=bpe)


def full_rank(model: PreTrainedModel) -> Callable[[DynamicCache], XKVCache]:
    return lambda cache: XKVCache.from_cache(
        cache, model, window=1, rank_key=16, rank_value=16, min_length=8, trust_positions=True
    )


def test_exact_and_full_rank_rows_do_not_diverge(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    exact, ours = evaluate(
        llama, tokenizer, TEXT, {"ours": full_rank(llama)}, prompt_tokens=64, continuation_tokens=16
    )
    assert exact["cache"] == "exact"
    assert exact["kl"] == 0
    assert (exact["ratio"], exact["agreement"]) == (1, 1)
    # Float32 logits of the order of ten differ in the fifth digit.
    assert 0 <= ours["kl"] < 1e-6
    assert ours["nll"] == pytest.approx(exact["nll"], abs=1e-3)


def test_exact_nll_is_the_models_loss(llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    rows = evaluate(llama, tokenizer, TEXT, {}, prompt_tokens=40, continuation_tokens=20)
    ids = tokenizer(TEXT, return_tensors="pt").input_ids[:, :61]
    labels = ids.clone()
    # The first scored token is the one after the continuation's first.
    labels[:, :41] = -100
    with torch.no_grad():
        loss = llama(ids, labels=labels).loss
    assert rows[0]["nll"] == pytest.approx(float(loss), rel=1e-4)


def test_step_by_step_scores_the_same(llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    caches = {"ours": full_rank(llama)}
    at_once = evaluate(llama, tokenizer, TEXT, caches, prompt_tokens=40, continuation_tokens=8)[1]
    stepwise = evaluate(llama, tokenizer, TEXT, caches, prompt_tokens=40, continuation_tokens=8, step=1)[1]
    assert stepwise["nll"] == pytest.approx(at_once["nll"], abs=1e-3)


def test_figures_are_means_over_passages(llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    both = evaluate(llama, tokenizer, TEXT, {}, prompt_tokens=32, continuation_tokens=8, passages=2)[0]
    begin = TEXT.find("\n", len(TEXT) // 2) + 1
    single = [
        evaluate(llama, tokenizer, text, {}, prompt_tokens=32, continuation_tokens=8)[0]["nll"]
        for text in (TEXT, TEXT[begin:])
    ]
    assert both["nll"] == pytest.approx(sum(single) / 2)


def test_passages_begin_at_lines_and_follow_the_text(tokenizer: PreTrainedTokenizerFast) -> None:
    found = list(passages_of(TEXT, tokenizer, 30, 10, count=3))
    assert [tuple(part.shape) for part in (found[0].prompt, found[0].continuation)] == [(1, 30), (1, 11)]
    for passage in found:
        whole = tokenizer.decode(torch.cat([passage.prompt, passage.continuation], dim=1)[0])
        assert whole.startswith("On day")
        assert whole in TEXT


def test_default_rows_are_ours_and_the_peers(llama: PreTrainedModel) -> None:
    names = list(candidates(llama, ratios=(2, 8), windows=(1, 3)))
    assert names[:4] == [
        "SVD 2x, each layer",
        "xKV 2x, 3 layers",
        "SVD 8x, each layer",
        "xKV 8x, 3 layers",
    ]
    assert {"8-bit float", "KIVI 2-bit", "MiniCache"} <= set(names)
    assert len(candidates(llama, peers=False)) == 2


def test_bytes_of_an_exact_cache(llama: PreTrainedModel) -> None:
    cache = prefill(llama, torch.arange(1, 33)[None])
    assert held_bytes(cache) == 2 * 5 * 2 * 32 * 8 * 4
    assert held_bytes(cache, float_bytes=2) == held_bytes(cache) // 2


def test_sixteen_bits_halve_floats_and_leave_codes(llama: PreTrainedModel) -> None:
    cache = KIVICache.from_cache(prefill(llama, torch.arange(1, 65)[None]), group=8)
    # Codes are bytes and scales float16 already; 64 tokens leave no exact keys.
    assert held_bytes(cache, float_bytes=2) == held_bytes(cache)


def test_bytes_of_ours_are_its_own_count(llama: PreTrainedModel) -> None:
    cache = full_rank(llama)(prefill(llama, torch.arange(1, 33)[None]))
    assert held_bytes(cache) == cache.nbytes()


def test_a_needle_counts_when_every_token_of_it_is_told(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = needle(TEXT, tokenizer, 200, 0.5, answer="12345")

    def told(model: PreTrainedModel, given: Tensor, cache: object, *, step: int | None = None) -> Tensor:
        del model, given, step
        right = hidden.answer_ids.clone()
        if isinstance(cache, XKVCache):
            right[:, -1] = 0
        return torch.nn.functional.one_hot(right, 300).float()

    monkeypatch.setattr("separata_xkv.evaluation.needle", lambda *_, **__: hidden)
    monkeypatch.setattr("separata_xkv.evaluation.continuation_logits", told)
    caches = {"exact": copy.deepcopy, "one digit wrong": full_rank(llama)}
    found = needle_accuracy(llama, tokenizer, TEXT, caches, length=200, count=3)
    assert found == {"exact": 1.0, "one digit wrong": 0.0}


def test_an_untrained_model_finds_no_needle(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    found = needle_accuracy(llama, tokenizer, TEXT, {"exact": copy.deepcopy}, length=200, count=2)
    assert found == {"exact": 0.0}


@torch.no_grad()
def test_greedy_is_transformers_own(llama: PreTrainedModel) -> None:
    ids = torch.arange(1, 31)[None]
    expected = llama.generate(ids, max_new_tokens=12, do_sample=False)[0, 30:]
    assert torch.equal(greedy(llama, ids[:, -1:], prefill(llama, ids[:, :-1]), 12), expected)


@torch.no_grad()
def test_greedy_stops_at_the_end_of_text(llama: PreTrainedModel) -> None:
    ids = torch.arange(1, 31)[None]
    written = greedy(llama, ids, DynamicCache(config=llama.config), 12)
    model = copy.deepcopy(llama)
    model.generation_config.eos_token_id = [int(written[4])]
    stopped = greedy(model, ids, DynamicCache(config=llama.config), 12)
    first = written.tolist().index(int(written[4]))
    assert stopped.tolist() == written[: first + 1].tolist()


@pytest.mark.parametrize("option", [{"passages": 0}, {"needles": -1}, {"prompt_tokens": 1}])
def test_counts_out_of_range_are_refused(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, option: dict[str, int]
) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(option))):
        evaluate(llama, tokenizer, TEXT, {}, **option)


def test_a_short_text_is_refused(llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(TextTooShort, match="passage 1 of 1"):
        evaluate(llama, tokenizer, "Too short.", {}, prompt_tokens=64)
