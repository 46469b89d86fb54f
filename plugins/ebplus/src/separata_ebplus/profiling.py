"""Step times of a real model: prefill, decode and mixed iterations, each one packed forward."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONTEXT = 32  # tokens that each decoding request has behind it
PREFILL = (16, 48, 96)
DECODE = (2, 8, 24)
MIXED = ((16, 0.25), (48, 0.25), (16, 0.5), (48, 0.5), (16, 0.75), (32, 0.75))


def profile(
    model: PreTrainedModel,
    *,
    prefill: Sequence[int] = PREFILL,
    decode: Sequence[int] = DECODE,
    mixed: Sequence[tuple[int, float]] = MIXED,
    context: int = CONTEXT,
    rounds: int = 2,
) -> Iterator[dict[str, Any]]:
    """Measure iterations of a model, the best of several rounds each.

    An iteration is one forward of one packed row, as in engines with continuous batching: the prompt's tokens and
    one token of each decoding request, every one masked to its own request. There are no paged kernels, so the mask
    is paid for; keep ``decode`` times ``context`` to about a thousand tokens.

    Args:
        model: A decoder of transformers.
        prefill: Numbers of prompt tokens.
        decode: Numbers of decoding requests.
        mixed: (tokens, share of them that decode).
        context: Tokens in the cache of each decoding request.
        rounds: How often each iteration is timed, after one that does not count.

    Yields:
        Rows that `TimingModel.fit` takes: phase, tokens, decode_share, seconds.
    """
    cases = [("prefill", tokens, 0) for tokens in prefill] + [("decode", 0, tokens) for tokens in decode]
    for tokens, share in mixed:
        cases.append(("mixed", tokens - round(share * tokens), round(share * tokens)))
    best = [float("inf")] * len(cases)
    # Rounds outside, cases inside: what disturbs the machine for a while then disturbs no single case.
    for turn in range(rounds + 1):
        for place, (_, prompt, decoding) in enumerate(cases):
            seconds = _time(model, prompt, decoding, context)
            if turn:
                best[place] = min(best[place], seconds)
    for (phase, prompt, decoding), seconds in zip(cases, best, strict=True):
        yield {
            "phase": phase,
            "tokens": prompt + decoding,
            "decode_share": decoding / (prompt + decoding),
            "seconds": seconds,
        }


def _time(model: PreTrainedModel, prompt: int, decoding: int, context: int) -> float:
    import torch

    inputs = _packed(model, prompt, decoding, context)
    with torch.no_grad():
        _wait(model)
        start = time.perf_counter()
        model(**inputs)
        _wait(model)
    return time.perf_counter() - start


def _packed(model: PreTrainedModel, prompt: int, decoding: int, context: int) -> dict[str, Any]:
    """Arguments of one forward: ``decoding`` requests with a cached context, then a prompt of its own."""
    import torch
    from transformers import DynamicCache

    config: Any = model.config.get_text_config()
    heads = config.num_key_value_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    device, dtype = model.device, model.dtype
    generator = torch.Generator().manual_seed(0)
    cached = decoding * context
    past = DynamicCache(config=config)
    if cached:
        states = torch.randn(1, heads, cached, head_dim, generator=generator).to(device, dtype)
        for layer in range(config.num_hidden_layers):
            past.update(states.clone(), states.clone(), layer)
    owner = torch.cat([torch.arange(decoding), torch.full((prompt,), decoding)])
    key_owner = torch.cat([torch.arange(decoding).repeat_interleave(context), owner])
    order = torch.cat([torch.zeros(cached, dtype=torch.long), torch.arange(decoding + prompt) + 1])
    seen = (owner[:, None] == key_owner) & (order[cached:, None] >= order)
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    positions = torch.cat([torch.full((decoding,), context), torch.arange(prompt)])
    ids = torch.randint(config.vocab_size, (1, decoding + prompt), generator=generator)
    return {
        "input_ids": ids.to(device),
        "position_ids": positions[None].to(device),
        "attention_mask": mask[None, None].to(device),
        "cache": past,
        "use_cache": True,
        "logits_to_keep": max(decoding, 1),
    }


def _wait(model: PreTrainedModel) -> None:
    if model.device.type == "cuda":
        import torch

        torch.cuda.synchronize(model.device)
