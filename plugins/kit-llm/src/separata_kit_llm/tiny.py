"""Tiny byte-level language models, trained in a minute on real text: for proofs about how models learn or route."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from .errors import InvalidOption
from .loading import quiet

BYTES = 256
M = TypeVar("M", bound=PreTrainedModel)
WARM_UP = 0.1


def byte_tokens(text: str) -> torch.Tensor:
    """The UTF-8 bytes of a text as token ids, int64, shape (n,); the vocabulary has 256 entries."""
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).long()


def held_out(tokens: torch.Tensor, share: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    """Training tokens, and the last ``share`` of the text, which training never sees."""
    if not 0 < share < 1:
        raise InvalidOption(f"share is {share}", "it is between 0 and 1, both excluded")
    cut = round(len(tokens) * (1 - share))
    return tokens[:cut], tokens[cut:]


def llama(
    *, seed: int, hidden: int = 128, layers: int = 4, heads: int = 4, length: int = 512
) -> LlamaForCausalLM:
    """An untrained Llama over bytes in float32; ``length`` is the longest sequence that it takes."""
    config = LlamaConfig(
        vocab_size=BYTES,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=length,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return _seeded(LlamaForCausalLM, config, seed)


def qwen3_moe(
    *,
    seed: int,
    hidden: int = 96,
    layers: int = 3,
    heads: int = 4,
    experts: int = 32,
    active: int = 4,
    expert_hidden: int = 48,
    length: int = 512,
) -> Qwen3MoeForCausalLM:
    """An untrained mixture of experts over bytes in float32: ``active`` of ``experts`` for each token and layer."""
    config = Qwen3MoeConfig(
        vocab_size=BYTES,
        hidden_size=hidden,
        intermediate_size=hidden * 2,
        moe_intermediate_size=expert_hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        num_experts=experts,
        num_experts_per_tok=active,
        norm_topk_prob=True,
        output_router_logits=False,
        router_aux_loss_coef=0.01,
        max_position_embeddings=length,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return _seeded(Qwen3MoeForCausalLM, config, seed)


def windows(
    tokens: torch.Tensor, *, batch: int, length: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Endless batches of random windows of the tokens, int64, shape (batch, length)."""
    if len(tokens) < length:
        raise InvalidOption(f"the text has {len(tokens)} tokens", f"give at least {length}, one window")
    offsets = torch.arange(length)
    while True:
        starts = torch.randint(len(tokens) - length + 1, (batch, 1), generator=generator)
        yield tokens[starts + offsets]


def pretrain(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    *,
    steps: int,
    batch: int = 16,
    length: int = 128,
    lr: float = 3e-3,
    seed: int = 0,
    optimizer: Optimizer | None = None,
) -> list[float]:
    """Train in place with next-token cross-entropy: linear warm-up over a tenth of the steps, then a cosine to 0.

    A mixture of experts also gets its load-balancing loss, weighted by its ``router_aux_loss_coef``.

    Args:
        model: A causal decoder; comes back in evaluation mode.
        tokens: Training text, int64, shape (n,).
        steps: Optimiser steps.
        batch: Windows a step.
        length: Tokens a window.
        lr: Highest learning rate of the AdamW that is used if ``optimizer`` is not given.
        seed: Draws the windows.
        optimizer: Another optimiser over the model's parameters; the schedule scales its own learning rates.

    Returns:
        The cross-entropy of each step in nats, before its update.
    """
    if steps < 1:
        raise InvalidOption(f"steps is {steps}", "train for at least one")
    optimizer = optimizer or AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = LambdaLR(optimizer, lambda step: _cosine(step, steps))
    balanced = getattr(model.config, "router_aux_loss_coef", 0.0) > 0
    batches = windows(tokens, batch=batch, length=length, generator=torch.Generator().manual_seed(seed))
    losses = []
    model.train()
    for _, ids in zip(range(steps), batches, strict=False):
        ids = ids.to(model.device)
        output: Any = model(ids, labels=ids, **({"output_router_logits": True} if balanced else {}))
        optimizer.zero_grad(set_to_none=True)
        output.loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(_cross_entropy(output, balanced, model))
    model.train(False)
    return losses


def save(model: PreTrainedModel, folder: str | Path) -> None:
    """Write a tiny model as a Hugging Face folder with safetensors."""
    with quiet():
        model.save_pretrained(folder)


def load(folder: str | Path) -> Any:
    """Read a tiny model back, in evaluation mode and float32; bytes need no tokenizer."""
    with quiet():
        model: Any = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, dtype=torch.float32)
    return model.train(False)


def _seeded(kind: type[M], config: Any, seed: int) -> M:
    """Build with random weights of the seed, and leave the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config)
    model.train(False)
    return model


def _cosine(step: int, steps: int) -> float:
    warm_up = max(1, round(WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    progress = (step - warm_up) / max(1, steps - warm_up)
    return (1 + math.cos(math.pi * progress)) / 2


def _cross_entropy(output: Any, balanced: bool, model: PreTrainedModel) -> float:
    loss = float(output.loss.detach())
    if balanced:
        loss -= model.config.router_aux_loss_coef * float(output.aux_loss.detach())
    return loss
