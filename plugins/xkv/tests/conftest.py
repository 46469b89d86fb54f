"""Small models with weights large enough for attention to choose, and real tensors of the right shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

VOCABULARY = 300
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "phi": ("Phi", {"partial_rotary_factor": 0.5}),
    "glm4": ("Glm4", {"head_dim": 8}),
    "cohere": ("Cohere", {}),
    "yarn": (
        "Llama",
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "rope_theta": 1e4,
                "original_max_position_embeddings": 128,
            }
        },
    ),
    "dynamic": (
        "Llama",
        {
            "max_position_embeddings": 128,
            "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4},
        },
    ),
    "gemma3": (
        "Gemma3Text",
        {
            "head_dim": 8,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"] * 2 + ["full_attention"],
        },
    ),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 5, "n_head": 4, "n_positions": 1024}),
    "deepseek": (
        "DeepseekV3",
        {
            "kv_lora_rank": 16,
            "q_lora_rank": None,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "num_key_value_heads": 4,
            "first_k_dense_replace": 5,
            "moe_intermediate_size": 16,
        },
    ),
}


def build(kind: str) -> PreTrainedModel:
    name, options = KINDS[kind]
    settings = {**SMALL, **options}
    if kind == "gpt2":
        wanted = ("vocab_size", "initializer_range", "bos_token_id", "eos_token_id", "pad_token_id", *options)
        settings = {key: settings[key] for key in wanted}
    config = getattr(transformers, f"{name}Config")(**settings)
    if kind != "gpt2":
        model_class = getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")
    else:
        model_class = transformers.GPT2LMHeadModel
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: PreTrainedModel = model_class(config)
    return model.eval().requires_grad_(False)


@pytest.fixture(scope="session")
def model_of() -> Callable[[str], PreTrainedModel]:
    """Build a tiny model of one kind, once a session."""
    built: dict[str, PreTrainedModel] = {}

    def get(kind: str) -> PreTrainedModel:
        if kind not in built:
            built[kind] = build(kind)
        return built[kind]

    return get


@pytest.fixture(scope="session")
def llama(model_of: Callable[[str], PreTrainedModel]) -> PreTrainedModel:
    return model_of("llama")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def tokens(generator: torch.Generator) -> Callable[[int, int], Tensor]:
    """Random tokens without repetition at the start, which would look like padding."""

    def draw(batch: int, length: int) -> Tensor:
        drawn = torch.randint(1, VOCABULARY, (batch, length), generator=generator)
        drawn[:, 1:2] = drawn[:, :1] % (VOCABULARY - 1) + 1
        return drawn

    return draw


@pytest.fixture
def decode() -> Callable[..., Tensor]:
    """Process a prompt, then feed the true continuation; logits after the prompt and after each token."""

    @torch.no_grad()
    def run(
        model: PreTrainedModel, cache: Any, prompt: Tensor, continuation: Tensor, **options: Any
    ) -> Tensor:
        logits = [model(prompt, cache=cache, **options).logits[:, -1:]]
        for place in range(continuation.shape[1]):
            logits.append(model(continuation[:, place : place + 1], cache=cache).logits)
        return torch.cat(logits, dim=1)

    return run


@pytest.fixture
def filled() -> Callable[[PreTrainedModel, Tensor], DynamicCache]:
    """An exact cache of a prompt."""

    @torch.no_grad()
    def run(model: PreTrainedModel, prompt: Tensor) -> DynamicCache:
        cache = DynamicCache(config=model.config)
        model(prompt, cache=cache)
        return cache

    return run


@pytest.fixture
def reachable() -> Callable[[Any], list[Tensor]]:
    """Every tensor that can be reached from an object, through any attribute or container."""

    def inside(value: Any, seen: set[int]) -> Iterator[Tensor]:
        if (
            id(value) in seen
            or isinstance(value, type)
            or (callable(value) and not hasattr(value, "__dict__"))
        ):
            return
        seen.add(id(value))
        if isinstance(value, Tensor):
            yield value
            return
        if isinstance(value, dict):
            parts = list(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            parts = list(value)
        else:
            parts = list(getattr(value, "__dict__", {}).values())
            parts += [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        for item in parts:
            yield from inside(item, seen)

    return lambda value: list(inside(value, set()))


@pytest.fixture
def storage_bytes(reachable: Callable[[Any], list[Tensor]]) -> Callable[[Any], int]:
    """Bytes of all storages behind the tensors that an object reaches."""

    def count(value: Any) -> int:
        storages = [tensor.untyped_storage() for tensor in reachable(value)]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    return count
