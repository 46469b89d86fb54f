"""Small mixtures of experts of several families, untrained but with weights large enough to choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from separata_kit_llm import tiny
from separata_oea import example_model

SMALL = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 4,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
LATENT = {
    "n_routed_experts": 16,
    "first_k_dense_replace": 0,
    "n_group": 4,
    "topk_group": 2,
    "n_shared_experts": 1,
    "routed_scaling_factor": 2.5,
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("Qwen3Moe", {"num_experts": 16, "norm_topk_prob": True}),
    "olmoe": ("Olmoe", {"num_experts": 16, "norm_topk_prob": False}),
    "mixtral": ("Mixtral", {"num_local_experts": 16}),
    "deepseek2": ("DeepseekV2", {**LATENT, "topk_method": "group_limited_greedy"}),
    "deepseek3": ("DeepseekV3", {**LATENT, "norm_topk_prob": True}),
    "granite": ("GraniteMoe", {"num_local_experts": 16}),
}


def build(kind: str) -> Any:
    name, options = KINDS[kind]
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **options})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith("e_score_correction_bias"):
                buffer.normal_().mul_(0.1)
    return model.float().eval().requires_grad_(False)


@pytest.fixture(scope="session")
def model_of() -> Callable[[str], Any]:
    """Build a small model of one family, once a session."""
    built: dict[str, Any] = {}

    def get(kind: str) -> Any:
        if kind not in built:
            built[kind] = build(kind)
        return built[kind]

    return get


@pytest.fixture(scope="session")
def qwen3(model_of: Callable[[str], Any]) -> Any:
    return model_of("qwen3")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def ids(generator: torch.Generator) -> Tensor:
    """Six rows of ten tokens."""
    return torch.randint(1, 256, (6, 10), generator=generator)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A barely trained model with its byte tokenizer, as a Hugging Face folder."""
    place = tmp_path_factory.mktemp("moe")
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=2, experts=16, active=4, expert_hidden=16)
    example_model.save(model, place)
    return place


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A text file of a few thousand bytes."""
    place = tmp_path_factory.mktemp("text") / "prose.txt"
    place.write_text("Experts that others load anyway cost nothing more to ask. " * 60)
    return place
