"""What a compressed prompt costs and what it changes: bytes, divergence, likelihood and retrieval, cache by cache."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import Cache

from separata_kit_llm import continuation_logits, kl_divergence, needle
from separata_kit_llm.errors import TextTooShort

from .cache import XKVCache
from .errors import InvalidSetting
from .peers import KIVICache, MiniCache, fp8_cache

Factory: TypeAlias = Callable[[DynamicCache], Cache]
"""Makes a compressed cache from an exact one, and leaves that as it is."""

EXACT = "exact"
KEYS = (
    "the harbour gate",
    "the north tower",
    "the old mill",
    "the library",
    "the lighthouse",
    "the town hall",
)
CHARACTERS = 16  # no tokenizer in use makes tokens of more characters than that on average


@attrs.frozen
class Passage:
    """A prompt with the tokens that really follow it.

    Args:
        prompt: A ``1 x prompt tokens`` tensor.
        continuation: A ``1 x (scored tokens + 1)`` tensor.
    """

    prompt: Tensor
    continuation: Tensor


def candidates(
    model: PreTrainedModel,
    *,
    ratios: Sequence[float] = (8.0,),
    windows: Sequence[int] = (1, 3),
    peers: bool = True,
    **settings: Any,
) -> dict[str, Factory]:
    """The caches worth a row each: xKV at every ratio and window, and its peers.

    Args:
        model: The model.
        ratios: Byte ratios of xKV.
        windows: Layers that share a basis; 1 is a singular value decomposition of each layer.
        peers: Add the quantised caches of 2 to 4 bits and the merged cache.
        settings: Further settings of ``XKVConfig``.

    Returns:
        Factories by the row's name.
    """

    def compressed(ratio: float, window: int) -> Factory:
        return lambda cache: XKVCache.from_cache(cache, model, ratio=ratio, window=window, **settings)

    made = {
        f"xKV {ratio:g}x, {window} layers" if window > 1 else f"SVD {ratio:g}x, each layer": compressed(
            ratio, window
        )
        for ratio in ratios
        for window in windows
    }
    return {**made, **(rivals(model) if peers else {})}


def rivals(model: PreTrainedModel) -> dict[str, Factory]:
    """The peers that compress by other means than a factorisation, by name.

    Args:
        model: The model.
    """

    def quantised(key_bits: int, value_bits: int, group: int) -> Factory:
        return lambda cache: KIVICache.from_cache(
            cache, key_bits=key_bits, value_bits=value_bits, group=group
        )

    return {
        "8-bit float": lambda cache: fp8_cache(cache, model.config),
        "KIVI 4-bit keys, 2-bit values": quantised(4, 2, 32),
        "KIVI 2-bit": quantised(2, 2, 32),
        "KIVI 2-bit keys, 1-bit values": quantised(2, 1, 64),
        "MiniCache": MiniCache.from_cache,
    }


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    caches: Mapping[str, Factory] | None = None,
    *,
    prompt_tokens: int = 1024,
    continuation_tokens: int = 128,
    passages: int = 1,
    needles: int = 0,
    step: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Compress prompts from a text in several ways, and score what the model makes of their true continuations.

    Every prompt is processed once, exactly; each cache is made from that exact one. For a selective mode run this
    inside ``attention_of(model)`` with ``step=1``, so that each token selects as in decoding.

    Args:
        model: A causal decoder.
        tokenizer: Its tokenizer.
        text: Real text.
        caches: Factories by name; ``candidates(model)`` if not given.
        prompt_tokens: Tokens of a prompt.
        continuation_tokens: Tokens scored after it.
        passages: Prompts, spread evenly over the text; figures are means over them.
        needles: Needle-in-a-haystack prompts of the same length, at evenly spread depths.
        step: Tokens of the continuation a forward; all at once if not given.
        seed: Seed of the needles' numbers.

    Returns:
        One row a cache, ``exact`` first: ``cache``; ``bytes`` really held by the compressed prompt; ``ratio`` of
        the exact cache's bytes to them; ``ratio_16bit``, the same if all floating-point numbers of more than 16
        bits were held in 16, as models are served on accelerators; ``kl`` to the exact cache's predictions and
        ``nll`` of the true tokens, nats a token; ``agreement``, how often both name the same token as the
        likeliest; with needles, ``needle``, the share of them that greedy decoding repeats to the last digit.

    Raises:
        TextTooShort: If the text has fewer tokens than asked for.
        InvalidSetting: If a count is out of range.
    """
    for name, count, least in (
        ("passages", passages, 1),
        ("needles", needles, 0),
        ("prompt_tokens", prompt_tokens, 2),
    ):
        if count < least:
            raise InvalidSetting(f"{name} is {count}", f"{name} is at least {least}")
    named: dict[str, Factory] = {EXACT: copy.deepcopy, **(candidates(model) if caches is None else caches)}
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in named}
    for passage in passages_of(text, tokenizer, prompt_tokens, continuation_tokens, passages):
        for name, score in _scored(model, passage, named, step):
            scores[name].append(score)
    rows = [{"cache": name, **_means(found)} for name, found in scores.items()]
    if needles:
        shares = needle_accuracy(
            model, tokenizer, text, named, length=prompt_tokens, count=needles, step=step, seed=seed
        )
        rows = [{**row, "needle": shares[str(row["cache"])]} for row in rows]
    return rows


def passages_of(
    text: str,
    tokenizer: PreTrainedTokenizerBase,
    prompt_tokens: int,
    continuation_tokens: int,
    count: int = 1,
) -> Iterator[Passage]:
    """Prompts that begin at evenly spread lines of a text, the first at its beginning.

    Args:
        text: The text.
        tokenizer: The model's tokenizer.
        prompt_tokens: Tokens of a prompt.
        continuation_tokens: Tokens to be scored after it.
        count: How many.

    Raises:
        TextTooShort: If the text ends within a passage.
    """
    wanted = prompt_tokens + continuation_tokens + 1
    for number in range(count):
        begin = text.find("\n", len(text) * number // count) + 1 if number else 0
        piece = text[begin : begin + CHARACTERS * wanted]
        encoded: Any = tokenizer(piece, return_tensors="pt", verbose=False)
        ids = encoded.input_ids[:, :wanted]
        if ids.shape[1] < wanted:
            raise TextTooShort(
                f"passage {number + 1} of {count} has {ids.shape[1]} tokens",
                f"give a longer text: a prompt and its continuation take {wanted} tokens",
            )
        yield Passage(ids[:, :prompt_tokens], ids[:, prompt_tokens:])


@torch.no_grad()
def prefill(model: PreTrainedModel, input_ids: Tensor) -> DynamicCache:
    """The exact cache of a prompt.

    Args:
        model: A causal decoder.
        input_ids: A ``batch x length`` tensor.
    """
    cache = DynamicCache(config=model.config)
    model(input_ids=input_ids.to(model.device), cache=cache, logits_to_keep=1)
    return cache


@torch.no_grad()
def greedy(model: PreTrainedModel, input_ids: Tensor, cache: Cache, max_new_tokens: int) -> Tensor:
    """Tokens that greedy decoding writes behind a cached prompt.

    Args:
        model: A causal decoder.
        input_ids: A ``1 x n`` tensor: the end of the prompt, not yet in the cache.
        cache: What stands before it; it grows.
        max_new_tokens: Most tokens; decoding stops after an end-of-text token.

    Returns:
        The new tokens, one-dimensional.
    """
    config: Any = model.generation_config
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    token, written = input_ids.to(model.device), []
    for _ in range(max_new_tokens):
        logits = model(input_ids=token, cache=cache, logits_to_keep=1).logits
        token = logits[:, -1:].argmax(-1)
        written.append(token[0])
        if int(token) in ends:
            break
    return torch.cat(written)


def held_bytes(cache: Cache, *, float_bytes: int | None = None) -> int:
    """Bytes of the storage behind every tensor that a cache holds, each storage once.

    Args:
        cache: Any cache of transformers, or one of ours.
        float_bytes: Count floating-point numbers that take more as if they took so many bytes.
    """
    found = {}
    for tensor in _held(cache):
        size = tensor.element_size()
        if float_bytes is not None and tensor.is_floating_point():
            size = min(size, float_bytes)
        storage = tensor.untyped_storage()
        found[tensor.device, storage.data_ptr()] = storage.nbytes() * size // tensor.element_size()
    return sum(found.values())


def _held(cache: Cache) -> Iterator[Tensor]:
    if isinstance(cache, XKVCache):
        return cache.tensors()
    return _tensors_in([vars(layer) for layer in cache.layers])


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors_in(item)


def _scored(
    model: PreTrainedModel, passage: Passage, caches: Mapping[str, Factory], step: int | None
) -> Iterator[tuple[str, dict[str, float]]]:
    exact = prefill(model, passage.prompt)
    full, full_16bit = held_bytes(exact), held_bytes(exact, float_bytes=2)
    given, true = (
        ids.to(model.device) for ids in (passage.continuation[:, :-1], passage.continuation[:, 1:])
    )
    reference = continuation_logits(model, given, copy.deepcopy(exact))
    for name, factory in caches.items():
        cache = factory(exact)
        held, held_16bit = held_bytes(cache), held_bytes(cache, float_bytes=2)
        logits = continuation_logits(model, given, cache, step=step)
        nll = torch.nn.functional.cross_entropy(logits[0].double(), true[0])
        yield (
            name,
            {
                "bytes": held,
                "ratio": full / held,
                "ratio_16bit": full_16bit / held_16bit,
                "kl": float(kl_divergence(reference, logits).mean()),
                "nll": float(nll),
                "agreement": float((reference.argmax(-1) == logits.argmax(-1)).double().mean()),
            },
        )


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    means = {name: sum(score[name] for score in scores) / len(scores) for name in scores[0]}
    return {**means, "bytes": round(means["bytes"])}


def needle_accuracy(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    caches: Mapping[str, Factory],
    *,
    length: int,
    count: int,
    step: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """The share of needles in a haystack that each cache's greedy continuation repeats to the last digit.

    Args:
        model: A causal decoder.
        tokenizer: Its tokenizer.
        text: The haystack.
        caches: Factories by name.
        length: Tokens of a prompt.
        count: Needles, at evenly spread depths.
        step: Tokens of the answer a forward; all at once if not given.
        seed: Seed of the numbers to be found.
    """
    numbers = random.Random(seed)
    hits = dict.fromkeys(caches, 0)
    for number in range(count):
        answer = str(numbers.randrange(10_000, 100_000))
        depth, key = (number + 0.5) / count, KEYS[number % len(KEYS)]
        hidden = needle(text, tokenizer, length, depth, key=key, answer=answer)
        exact = prefill(model, hidden.input_ids[:, :-1])
        # Teacher forcing decides the same as greedy decoding: the first wrong token is wrong in both.
        given = torch.cat([hidden.input_ids[:, -1:], hidden.answer_ids[:, :-1]], dim=1).to(model.device)
        for name, factory in caches.items():
            told = continuation_logits(model, given, factory(exact), step=step).argmax(-1)
            hits[name] += int(torch.equal(told.cpu(), hidden.answer_ids))
    return {name: hit / count for name, hit in hits.items()}
