"""How well a model predicts tokens: negative log-likelihood, strided perplexity, and divergence between two runs.

All figures are in nats and are computed in float64 from the model's logits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel, PreTrainedTokenizerBase

from .errors import InvalidOption, TextTooShort

ROWS = 256  # positions widened to float64 at a time: 256 x 150,000 logits are 300 MB


@attrs.frozen
class Perplexity:
    """A model's score on a text.

    Args:
        perplexity: ``exp`` of the mean negative log-likelihood a token.
        nll: That mean, in nats a token.
        bits_per_byte: The text's total negative log-likelihood in bits over its UTF-8 bytes; unlike perplexity it
            compares models with different tokenizers.
        tokens: Tokens that were scored: all but the first.
    """

    perplexity: float
    nll: float
    bits_per_byte: float
    tokens: int


@torch.no_grad()
def continuation_logits(
    model: PreTrainedModel, input_ids: Tensor, cache: Cache | None = None, *, step: int | None = None
) -> Tensor:
    """Next-token logits at every token of a continuation, teacher forced, behind a cached prompt.

    Args:
        model: A causal decoder.
        input_ids: A ``batch x length`` tensor of the true continuation.
        cache: The prompt's cache; it grows by the continuation. None if there is no prompt.
        step: Tokens a forward; all at once if not given. ``1`` runs the model as decoding does, which matters for
            caches that select what each step attends to.

    Returns:
        A ``batch x length x vocabulary`` tensor; position i predicts token i + 1. The first token itself is
        predicted by the prompt's last logits, so leave the prompt's last token out of the cache to score it.
    """
    if step is not None and step < 1:
        raise InvalidOption(f"step is {step}", "feed at least one token a forward")
    pieces = []
    for piece in torch.split(input_ids, step or input_ids.shape[1], dim=1):
        if cache is None and step:
            output = model(input_ids=piece, use_cache=True)
            cache = output.cache
        else:
            output = model(input_ids=piece, cache=cache, use_cache=cache is not None)
        pieces.append(output.logits)
    return torch.cat(pieces, dim=1)


def token_nll(
    model: PreTrainedModel,
    input_ids: Tensor,
    *,
    cache: Cache | None = None,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Negative log-likelihood of each token but the first, given all before it.

    Args:
        model: A causal decoder.
        input_ids: A ``batch x length`` tensor.
        cache: Cache of what stands before ``input_ids``; it grows by them.
        attention_mask: A ``batch x (cached + length)`` tensor with 0 where there is padding; tokens that are
            padding, or follow padding, score NaN.

    Returns:
        A ``batch x (length - 1)`` float64 tensor, in nats.
    """
    with torch.no_grad():
        logits = model(
            input_ids=input_ids, cache=cache, attention_mask=attention_mask, use_cache=cache is not None
        ).logits
    nll = _nll(logits[:, :-1], input_ids[:, 1:])
    if attention_mask is not None:
        mask = attention_mask[:, -input_ids.shape[1] :].bool()
        nll = nll.masked_fill(~(mask[:, 1:] & mask[:, :-1]), math.nan)
    return nll


def perplexity(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    window: int = 1024,
    stride: int = 512,
) -> Perplexity:
    """Perplexity of a text of any length, by a window that slides over it.

    Each window scores its last ``stride`` tokens (the first window all of its tokens), with the tokens before
    them as context, so that every token but the first is scored once with at least ``window - stride`` tokens of
    context where the text has them.

    Args:
        model: A causal decoder.
        tokenizer: Its tokenizer.
        text: The text.
        window: Tokens the model sees at a time.
        stride: Tokens by which the window moves: a smaller one gives more context and takes longer.

    Raises:
        InvalidOption: If not ``1 <= stride < window``.
        TextTooShort: If the text has fewer than two tokens.
    """
    if window < 2 or not 1 <= stride < window:
        raise InvalidOption(
            f"window is {window} and stride is {stride}",
            "window is at least 2 and stride is 1 to window - 1: a token is scored from what stands before it",
        )
    encoded: Any = tokenizer(text, return_tensors="pt", verbose=False)
    input_ids = encoded.input_ids.to(model.device)
    if input_ids.shape[1] < 2:
        raise TextTooShort(
            f"the text has {input_ids.shape[1]} tokens", "two tokens are the least that can be scored"
        )
    total, scored = 0.0, 0
    for begin, end, fresh in _windows(input_ids.shape[1], window, stride):
        with torch.no_grad():
            logits = model(
                input_ids=input_ids[:, begin:end], use_cache=False, logits_to_keep=fresh + 1
            ).logits
        total += float(_nll(logits[:, :-1], input_ids[:, end - fresh : end]).sum())
        scored += fresh
    # The first token is context only, so its bytes do not count; a begin-of-text mark has none.
    first = tokenizer.decode(input_ids[0, :1], skip_special_tokens=True)
    scored_bytes = len(text.encode()) - len(str(first).encode())
    mean = total / scored
    return Perplexity(math.exp(mean), mean, total / math.log(2) / max(scored_bytes, 1), scored)


def kl_divergence(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """``KL(p || q)`` of two next-token distributions at each position, in nats.

    Args:
        logits_p: A ``... x vocabulary`` tensor: the distribution that decides, such as the exact model's.
        logits_q: The other one, of the same shape.

    Returns:
        A ``...`` float64 tensor. Tokens that p rules out (logit ``-inf``) add nothing; a token that only q rules
        out makes it infinite.
    """
    if logits_p.shape != logits_q.shape:
        raise InvalidOption(
            f"logits have shapes {tuple(logits_p.shape)} and {tuple(logits_q.shape)}", "compare equal shapes"
        )
    flat_p, flat_q = logits_p.flatten(0, -2), logits_q.flatten(0, -2)
    rows = [_kl(p, q) for p, q in zip(torch.split(flat_p, ROWS), torch.split(flat_q, ROWS), strict=True)]
    return torch.cat(rows).reshape(logits_p.shape[:-1])


def _kl(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    log_p, log_q = logits_p.double().log_softmax(-1), logits_q.double().log_softmax(-1)
    # -inf - -inf would be NaN where p is zero.
    difference = torch.where(log_p == -math.inf, 0.0, log_p - log_q)
    return (log_p.exp() * difference).sum(-1)


def _nll(logits: Tensor, targets: Tensor) -> Tensor:
    flat, wanted = logits.flatten(0, -2), targets.flatten()
    rows = [
        torch.nn.functional.cross_entropy(piece.double(), part, reduction="none")
        for piece, part in zip(torch.split(flat, ROWS), torch.split(wanted, ROWS), strict=True)
    ]
    return torch.cat(rows).reshape(targets.shape)


def _windows(length: int, window: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Begin and end of each window, and how many of its last tokens it scores."""
    done, begin = 1, 0
    while done < length:
        end = min(begin + window, length)
        yield begin, end, end - done
        done = end
        begin += stride
