from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerFast

from separata_kit_llm import continuation_logits, kl_divergence, perplexity, token_nll
from separata_kit_llm.errors import InvalidOption, TextTooShort


def test_mean_nll_is_the_models_own_loss(model: PreTrainedModel, input_ids: Tensor) -> None:
    with torch.no_grad():
        loss = model(input_ids, labels=input_ids).loss
    nll = token_nll(model, input_ids)
    assert nll.shape == (2, 23)
    assert nll.dtype == torch.float64
    # The model's own loss is summed in float32.
    torch.testing.assert_close(nll.mean().float(), loss, rtol=1e-5, atol=0)


def test_nll_behind_a_cache_is_the_nll_of_the_whole(model: PreTrainedModel, input_ids: Tensor) -> None:
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids[:, :10], cache=cache)
    behind = token_nll(model, input_ids[:, 10:], cache=cache)
    # Float32 attention over a cache sums in another order.
    torch.testing.assert_close(behind, token_nll(model, input_ids)[:, 10:], rtol=1e-4, atol=1e-4)
    assert cache.get_seq_length() == 24


def test_right_padding_scores_nan_and_changes_nothing_else(llama: PreTrainedModel, input_ids: Tensor) -> None:
    mask = torch.ones_like(input_ids)
    mask[1, 20:] = 0
    nll = token_nll(llama, input_ids, attention_mask=mask)
    assert nll[1, 19:].isnan().all()
    torch.testing.assert_close(nll[1, :19], token_nll(llama, input_ids[1:, :20])[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("step", [None, 1, 5])
def test_continuation_logits_are_those_of_one_forward(
    model: PreTrainedModel, input_ids: Tensor, step: int | None
) -> None:
    with torch.no_grad():
        whole = model(input_ids).logits
        cache = DynamicCache(config=model.config)
        model(input_ids[:, :10], cache=cache)
    torch.testing.assert_close(
        continuation_logits(model, input_ids[:, 10:], cache, step=step), whole[:, 10:], rtol=1e-4, atol=1e-4
    )


def test_continuation_without_a_prompt(llama: PreTrainedModel, input_ids: Tensor) -> None:
    torch.testing.assert_close(
        continuation_logits(llama, input_ids, step=7),
        continuation_logits(llama, input_ids),
        rtol=1e-4,
        atol=1e-4,
    )


def test_step_below_one_is_refused(llama: PreTrainedModel, input_ids: Tensor) -> None:
    with pytest.raises(InvalidOption, match="step is 0"):
        continuation_logits(llama, input_ids, step=0)


def test_one_window_is_the_plain_mean(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prose: str
) -> None:
    text = prose[:300]
    ids = tokenizer(text, return_tensors="pt").input_ids
    score = perplexity(llama, tokenizer, text, window=512, stride=256)
    assert score.tokens == ids.shape[1] - 1
    assert score.nll == pytest.approx(token_nll(llama, ids).mean().item(), rel=1e-6)
    assert score.perplexity == pytest.approx(math.exp(score.nll))


@pytest.mark.parametrize(("window", "stride"), [(32, 31), (32, 8), (17, 5), (2, 1)])
def test_each_token_is_scored_once_with_its_windows_context(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prose: str, window: int, stride: int
) -> None:
    text = prose[:200]
    ids = tokenizer(text, return_tensors="pt").input_ids
    length = ids.shape[1]
    expected = torch.zeros(length, dtype=torch.float64)
    for position in range(1, length):
        # The first window that holds the token scores it.
        begin = max(0, math.ceil((position + 1 - window) / stride)) * stride
        expected[position] = token_nll(llama, ids[:, begin : position + 1])[0, -1]
    score = perplexity(llama, tokenizer, text, window=window, stride=stride)
    assert score.tokens == length - 1
    assert score.nll * score.tokens == pytest.approx(expected.sum().item(), rel=1e-5)


def test_bits_per_byte_counts_the_scored_bytes(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prose: str
) -> None:
    text = prose[:90] + "é"
    ids = tokenizer(text, return_tensors="pt").input_ids
    scored = len(tokenizer.decode(ids[0, 1:]).encode())
    score = perplexity(llama, tokenizer, text)
    assert score.bits_per_byte == pytest.approx(score.nll * score.tokens / math.log(2) / scored)


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (8, 0), (8, 8)])
def test_windows_that_make_no_sense_are_refused(
    llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, window: int, stride: int
) -> None:
    with pytest.raises(InvalidOption):
        perplexity(llama, tokenizer, "Ships came in.", window=window, stride=stride)


def test_a_text_of_one_token_is_refused(llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(TextTooShort):
        perplexity(llama, tokenizer, "a")


@given(st.integers(0, 2**31), st.integers(2, 40), st.floats(0.1, 30))
def test_kl_is_that_of_torch_distributions(seed: int, vocabulary: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    p, q = (scale * torch.randn(3, 4, vocabulary, generator=generator, dtype=torch.float64) for _ in range(2))
    expected = torch_kl(Categorical(logits=p), Categorical(logits=q))
    torch.testing.assert_close(kl_divergence(p, q), expected, rtol=1e-9, atol=1e-12)
    assert (kl_divergence(p, p).abs() < 1e-12).all()


def test_kl_of_two_coins_in_closed_form() -> None:
    p, q = torch.tensor([[math.log(0.75), math.log(0.25)]]), torch.zeros(1, 2)
    expected = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-6)


def test_kl_with_tokens_ruled_out() -> None:
    certain, half = torch.tensor([0.0, -math.inf]), torch.tensor([0.0, 0.0])
    assert kl_divergence(certain[None], half[None]).item() == pytest.approx(math.log(2))
    assert kl_divergence(half[None], certain[None]).item() == math.inf


def test_kl_of_large_float32_logits_keeps_small_differences() -> None:
    p = torch.tensor([[200.0, 100.0, 0.0]])
    q = torch.tensor([[200.0, 101.0, 0.0]])
    # p(1) is e^-100: the divergence is e^-100 (e - 1 - 1), far below float32's resolution of p(0).
    expected = math.exp(-100) * (math.e - 2)
    assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-3, abs=1e-40)


def test_kl_wants_equal_shapes() -> None:
    with pytest.raises(InvalidOption):
        kl_divergence(torch.zeros(2, 3), torch.zeros(2, 4))
