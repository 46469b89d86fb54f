"""Speed against the exact cache and a full decomposition, on states of a real model's shape.

What is timed does not depend on what the numbers are, so that keys and values are drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from separata.claims import Race, Trial

from .anatomy import ATTENTION
from .cache import XKVCache  # registers the attention function
from .crosslayer_svd import crosslayer_svd

# SmolLM2-135M's attention, and Llama-3.1-8B's.
SMALL = {
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "rope_theta": 1e5,
}
LARGE = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rope_theta": 5e5,
}
SOLVER_LENGTHS = (1024, 2048, 4096, 8192)
STEP_LENGTHS = (2048, 4096, 8192, 16384)
LONG_STEP_LENGTHS = (16384, 32768, 65536, 131072)
DECODE_LENGTHS = (1024, 2048, 4096, 8192)


def factorise(trial: Trial) -> Iterator[Race]:
    """Keys of four layers of SmolLM2's width: the Gram route against a full decomposition.

    Args:
        trial: Gives the seed.
    """
    generator = trial.generator()
    for length in SOLVER_LENGTHS:
        states = [torch.randn(1, length, 192, generator=generator) for _ in range(4)]
        yield Race(length, _factorising(states), _decomposing(states))


def selective_step(trial: Trial) -> Iterator[Race]:
    """The attention of three layers for one token, selected from prompts of growing length at a fixed budget.

    Args:
        trial: Gives the seed and the scale.
    """
    large = trial.scale == "full"
    model = attention_only(large, device_of(trial))
    budget = 2048 if large else 512
    for length in LONG_STEP_LENGTHS if large else STEP_LENGTHS:
        exact = filled(model, length, trial.generator(model.device.type))
        selective = XKVCache.from_cache(exact, model, ratio=8, window=3, mode="sr", budget=budget)
        yield Race(length, decoding(model, selective), decoding(model, exact))


def decode(trial: Trial, lengths: Sequence[int] = DECODE_LENGTHS) -> Iterator[Race]:
    """One decoding step of the whole of SmolLM2 over compressed and exact prompts of growing length.

    Args:
        trial: Gives the model, the seed and the scale.
        lengths: Tokens of the prompts.
    """
    from separata_kit_llm import load

    # With exact states this attention is PyTorch's scaled dot product, so that both sides run the same model.
    model, _ = load(trial.input("smollm2"), attn_implementation=ATTENTION, device=device_of(trial))
    for length in lengths:
        exact = filled(model, length, trial.generator(model.device.type))
        dense = XKVCache.from_cache(exact, model, ratio=8, window=3)
        yield Race(length, decoding(model, dense), decoding(model, exact))


def device_of(trial: Trial) -> str:
    """Where a trial runs: on an accelerator at full scale, if there is one."""
    return "cuda" if trial.scale == "full" and torch.cuda.is_available() else "cpu"


def attention_only(large: bool = False, device: str = "cpu") -> PreTrainedModel:
    """Three layers with a real model's attention and next to nothing else, so that a step is attention.

    Args:
        large: Llama-3.1-8B's shape, else SmolLM2's.
        device: Where; weights are float32 on the CPU and bfloat16 elsewhere.
    """
    shape: dict[str, Any] = dict(LARGE if large else SMALL)
    rope = {"rope_type": "default", "rope_theta": shape.pop("rope_theta")}
    config = LlamaConfig(
        **shape,
        rope_parameters=rope,
        num_hidden_layers=3,
        intermediate_size=8,
        vocab_size=8,
        max_position_embeddings=2 * LONG_STEP_LENGTHS[-1],
        bos_token_id=None,
        eos_token_id=None,
    )
    model: Any = LlamaForCausalLM(config).train(False)
    model.set_attn_implementation(ATTENTION)
    model.to(device=device, dtype=torch.float32 if device == "cpu" else torch.bfloat16)
    found: PreTrainedModel = model
    return found


def filled(model: PreTrainedModel, length: int, generator: torch.Generator) -> DynamicCache:
    """An exact cache of random keys and values.

    Args:
        model: Gives layers, heads, width, device and dtype.
        length: Tokens.
        generator: Draws them, on the model's device.
    """
    config: Any = model.config
    cache = DynamicCache(config=config)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = (1, config.num_key_value_heads, length, width)

    def drawn() -> Tensor:
        return torch.randn(shape, generator=generator, device=model.device).to(model.dtype)

    for layer in range(config.num_hidden_layers):
        cache.update(drawn(), drawn(), layer)
    return cache


def decoding(model: PreTrainedModel, cache: Any) -> Callable[[], None]:
    """A function that runs one decoding step and takes it back, so that every call does the same.

    Args:
        model: The model.
        cache: Its cache; it can be cropped.
    """
    token = torch.zeros(1, 1, dtype=torch.long, device=model.device)

    @torch.no_grad()
    def step() -> None:
        model(input_ids=token, cache=cache)
        cache.crop(-1)
        if model.device.type == "cuda":
            torch.cuda.synchronize()

    return step


def _factorising(states: list[Tensor]) -> Callable[[], object]:
    return lambda: crosslayer_svd(states, 140, solver="gram")


def _decomposing(states: list[Tensor]) -> Callable[[], object]:
    return lambda: torch.linalg.svd(torch.cat(states, dim=-1), full_matrices=False)
