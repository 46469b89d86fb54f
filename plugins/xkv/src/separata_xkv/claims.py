"""The paper's claims put to the proof on a real model and real text, beside its peers."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, Literal

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from separata.claims import Evidence, Trial, at_least, at_most, growth, race
from separata_kit_llm import continuation_logits, load, read_tasks, read_text, string_match

from . import benchmarks
from .analysis import CrossLayerCKA
from .attention import attention_of
from .cache import XKVCache
from .evaluation import (
    EXACT,
    Factory,
    candidates,
    evaluate,
    greedy,
    held_bytes,
    needle_accuracy,
    passages_of,
    prefill,
    rivals,
)
from .ranks import factor_elements, resolve_ranks

TEXTS = ("shakespeare", "python-topics")
ROUNDS = 3
RULER_TOKENS = 128  # the longest answer that RULER asks for
RULER_EXAMPLES = 20  # of each task


def beats_per_layer(trial: Trial) -> Evidence:
    """How much a shared basis gains over one for each layer, at equal bytes."""
    model, tokenizer = _model(trial)
    ours, alone = "xKV 8x, 3 layers", "SVD 8x, each layer"
    rows = _over_texts(trial, model, tokenizer, candidates(model, peers=False), 2048, 256)
    divergence = _mean_of(rows, "kl")
    return Evidence(
        divergence[ours] / divergence[alone],
        at_most(0.6),
        "KL over KL of SVD of each layer",
        peers={alone: 1.0},
        table=rows,
        note="A wider basis pays off with the prompt's length: shorter prompts gain less.",
    )


def beats_rivals(trial: Trial) -> Evidence:
    """At 8 times fewer bytes than a 16-bit cache, against everything that compresses as far."""
    model, tokenizer = _model(trial)
    ours = "xKV 8x, 3 layers"
    factories = {**candidates(model, ratios=(4, 5.33, 8), windows=(3,), peers=False), **rivals(model)}
    factories.update(candidates(model, windows=(1,), peers=False))
    rows = _over_texts(trial, model, tokenizer, factories, 1024, 128)
    divergence, ratio = _mean_of(rows, "kl"), _mean_of(rows, "ratio_16bit")
    # One that keeps more bytes and diverges further is beaten as well; one that keeps more and diverges less is not
    # at equal bytes. 2 % is what whole ranks and positions shift.
    peers = {
        name: kl
        for name, kl in divergence.items()
        if not name.startswith(("xKV", EXACT)) and (ratio[name] >= 7.9 or kl > divergence[ours])
    }
    lighter = ", ".join(
        f"{name} at {ratio[name]:.1f}x {divergence[name]:.3f} (xKV there {divergence[same]:.3f})"
        for name, same in (
            ("KIVI 2-bit", "xKV 5.33x, 3 layers"),
            ("KIVI 4-bit keys, 2-bit values", "xKV 4x, 3 layers"),
        )
    )
    return Evidence(
        divergence[ours],
        at_most(min(peers.values())),
        "nats",
        peers=peers,
        table=rows,
        note=f"Where integer codes of two bits or more still fit they diverge less or about as much: {lighter}.",
    )


def finds_needles(trial: Trial) -> Evidence:
    """Facts hidden at three depths of each text, repeated word for word from prompts of a quarter of the bytes."""
    model, tokenizer = _model(trial)
    ours, quantised = "xKV 4x, 3 layers", "KIVI 4-bit keys, 2-bit values"
    factories = {**candidates(model, ratios=(4,), peers=False), quantised: rivals(model)[quantised]}
    rows: list[dict[str, Any]] = [
        {
            "text": name,
            **needle_accuracy(
                model, tokenizer, _text(trial, name), factories, length=1024, count=3, seed=trial.seed
            ),
        }
        for name in TEXTS
    ]
    found = {name: sum(row[name] for row in rows) / len(rows) for name in factories}
    return Evidence(found.pop(ours), at_least(0.9), "share of needles", peers=found, table=rows)


def layers_align(trial: Trial) -> Evidence:
    """Linear CKA of adjacent layers: the smaller of the means over keys and over values."""
    rows = _similarities(trial)
    aligned = min(min(row["key CKA"], row["value CKA"]) for row in rows)
    return Evidence(aligned, at_least(0.6), "CKA", table=rows)


def tokens_differ(trial: Trial) -> Evidence:
    """Cosine of one token's states in adjacent layers: the mean furthest from zero."""
    rows = _similarities(trial)
    cosine = max(max(abs(row["key cosine"]), abs(row["value cosine"])) for row in rows)
    return Evidence(cosine, at_most(0.05), "cosine", table=rows)


def bytes_counted(trial: Trial) -> Evidence:
    """``nbytes()`` against every tensor that can be reached from the cache, and against the formula."""
    model, tokenizer = _model(trial)
    prompt, tail = 700, 20
    passage = next(passages_of(_text(trial, TEXTS[0]), tokenizer, prompt, tail))
    exact = prefill(model, passage.prompt)
    rows = []
    for window in (1, 3, 4):
        cache = XKVCache.from_cache(exact, model, ratio=8, window=window)
        continuation_logits(model, passage.continuation[:, :tail].to(model.device), cache)
        rows.append(
            {
                "layers a group": window,
                "nbytes()": cache.nbytes(),
                "reachable": _reachable_bytes(cache),
                "formula": _formula(model, cache, prompt, tail),
            }
        )
    gap = max(abs(row["nbytes()"] - row[other]) for row in rows for other in ("reachable", "formula"))
    return Evidence(
        float(gap), at_most(0), "bytes", peers={"exact cache": float(held_bytes(exact))}, table=rows
    )


def full_rank_exact(trial: Trial) -> Evidence:
    """The largest difference of a logit from the exact cache's when nothing is truncated."""
    model, tokenizer = _model(trial)
    passage = next(passages_of(_text(trial, TEXTS[1]), tokenizer, 640, 32))
    given = passage.continuation.to(model.device)
    exact = prefill(model, passage.prompt)
    full: dict[str, Any] = {"window": 3, "rank_key": 576, "rank_value": 576}

    def difference(step: int | None, **settings: Any) -> float:
        cache = XKVCache.from_cache(exact, model, **{**full, **settings})
        logits = continuation_logits(model, given, cache, step=step)
        return float((logits - reference).abs().max())

    reference = continuation_logits(model, given, prefill(model, passage.prompt))
    rows: list[dict[str, Any]] = [
        {"mode": "dense, 3 layers", "difference": difference(None)},
        {"mode": "dense, each layer", "difference": difference(None, window=1, rank_key=192, rank_value=192)},
    ]
    with attention_of(model):
        rows.append({"mode": "dense, values never rebuilt", "difference": difference(1)})
        rows.append({"mode": "sr, budget for all tokens", "difference": difference(1, mode="sr", budget=640)})
    return Evidence(max(row["difference"] for row in rows), at_most(1e-4), "logit", table=rows)


def decode_cost(trial: Trial) -> Evidence:
    """Time of a dense step over that of an exact step, at the model's full context."""
    [entry] = benchmarks.decode(trial, benchmarks.DECODE_LENGTHS[-1:])
    timing = race(entry, rounds=ROUNDS)
    return Evidence(
        1 / timing.ratio,
        at_most(3),
        f"times the exact step at {entry.size} tokens",
        peers={"exact cache": 1.0},
    )


def selective_step(trial: Trial) -> Evidence:
    """The exponent with which the attention of a selective step grows with the prompt."""
    timings = [race(entry, rounds=ROUNDS) for entry in benchmarks.selective_step(trial)]
    sizes = [timing.size for timing in timings]
    return Evidence(
        growth(sizes, [timing.ours_s for timing in timings]),
        at_most(0.5),
        "exponent",
        peers={"exact cache": growth(sizes, [timing.peer_s for timing in timings])},
        table=[
            {"tokens": t.size, "selective s": t.ours_s, "exact s": t.peer_s, "times as fast": t.ratio}
            for t in timings
        ],
    )


def ruler_64k(trial: Trial) -> Evidence:
    """RULER on Llama-3.1-8B at full scale: needs the model's weights, RULER's files and an accelerator.

    The inputs are ``llama-3-1-8b``, a hub folder, and ``ruler-64k``, a folder with one JSONL file a task as RULER's
    own generator writes them.
    """
    model, tokenizer = load(trial.input("llama-3-1-8b"), device="auto", dtype="bfloat16")
    ranks = {"rank_key": 384, "rank_value": 576, "window": 4}

    def compressed(**settings: Any) -> Factory:
        return lambda cache: XKVCache.from_cache(cache, model, **settings)

    factories: dict[str, Factory] = {
        EXACT: lambda cache: cache,
        "xKV 8.03x": compressed(**ranks),
        "SVD 8.4x, each layer": compressed(ratio=8.4, window=1),
    }
    rows: list[dict[str, Any]] = []
    for file in sorted(trial.input("ruler-64k").glob("*.jsonl")):
        scores = dict.fromkeys(factories, 0.0)
        tasks = read_tasks(file)[:RULER_EXAMPLES]
        for task in tasks:
            ids = tokenizer(task.prompt, return_tensors="pt", verbose=False).input_ids
            # The exact cache comes last: it grows by what it generates.
            for name in reversed(factories):
                exact = prefill(model, ids[:, :-1])
                answer = greedy(model, ids[:, -1:], factories[name](exact), RULER_TOKENS)
                # RULER asks for all answers, and in question answering for any of them.
                match: Literal["any", "all"] = "any" if file.stem.startswith("qa") else "all"
                scores[name] += 100 * string_match(str(tokenizer.decode(answer)), task.answers, match=match)
        rows.append({"task": file.stem, **{name: score / len(tasks) for name, score in scores.items()}})
    means: dict[str, float] = {name: sum(row[name] for row in rows) / len(rows) for name in factories}
    ours = means.pop("xKV 8.03x")
    return Evidence(ours, at_least(87), "RULER average", peers=means, table=rows)


def _model(trial: Trial) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    return load(trial.input("smollm2"), device=benchmarks.device_of(trial))


def _text(trial: Trial, name: str) -> str:
    return read_text(name if name == "python-topics" else trial.input(name))


def _over_texts(
    trial: Trial,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    factories: Mapping[str, Factory],
    prompt_tokens: int,
    continuation_tokens: int,
) -> list[dict[str, Any]]:
    """The evaluation's rows for each text; at full scale over more passages of it."""
    passages = 8 if trial.scale == "full" else 1
    return [
        {"text": name, **row}
        for name in TEXTS
        for row in evaluate(
            model,
            tokenizer,
            _text(trial, name),
            factories,
            prompt_tokens=prompt_tokens,
            continuation_tokens=continuation_tokens,
            passages=passages,
        )
    ]


def _mean_of(rows: Sequence[Mapping[str, Any]], column: str) -> dict[str, float]:
    names = dict.fromkeys(str(row["cache"]) for row in rows)
    return {name: sum(row[column] for row in rows if row["cache"] == name) / len(TEXTS) for name in names}


def _similarities(trial: Trial) -> list[dict[str, Any]]:
    model, tokenizer = _model(trial)
    rows = []
    for name in TEXTS:
        passage = next(passages_of(_text(trial, name), tokenizer, 1024, 0))
        study = CrossLayerCKA(model, windows=(1,), ratios=(8.0,)).fit(prefill(model, passage.prompt))
        rows.append(
            {
                "text": name,
                "key CKA": float(study.key_cka_.diagonal(1).mean()),
                "value CKA": float(study.value_cka_.diagonal(1).mean()),
                "key cosine": float(study.key_cosine_.diagonal(1).mean()),
                "value cosine": float(study.value_cosine_.diagonal(1).mean()),
            }
        )
    return rows


def _formula(model: PreTrainedModel, cache: XKVCache, prompt: int, tail: int) -> int:
    """Bytes from shapes alone: factors, exact tail, the tokens' positions and the rotation's frequencies."""
    config: Any = model.config
    layers, heads, head_dim = config.num_hidden_layers, config.num_key_value_heads, config.head_dim
    # Transformers' rotary module keeps its frequencies twice, as they are and as they were at first.
    numbers: int = 2 * layers * heads * tail * head_dim + 2 * (head_dim // 2)
    for begin in range(0, layers, cache.settings.window):
        widths = [heads * head_dim] * min(cache.settings.window, layers - begin)
        ranks = resolve_ranks(cache.settings, prompt, widths, widths)
        numbers += sum(factor_elements(prompt, widths, rank) for rank in ranks)
    positions = 4 * (prompt + tail)
    return numbers * model.dtype.itemsize + positions


def _reachable_bytes(cache: XKVCache) -> int:
    """Bytes of all tensors that the garbage collector reaches from a cache, whatever the cache says of itself."""
    seen, waiting, storages = {id(cache)}, [cache], {}
    while waiting:
        current: Any = waiting.pop()
        if isinstance(current, Tensor):
            storages[current.untyped_storage().data_ptr()] = current.untyped_storage().nbytes()
        for held in gc.get_referents(current):
            # Classes, modules and functions are shared by everything; the model is not the cache's.
            if id(held) not in seen and not isinstance(
                held, type | ModuleType | FunctionType | PreTrainedModel
            ):
                seen.add(id(held))
                waiting.append(held)
    return sum(storages.values())
