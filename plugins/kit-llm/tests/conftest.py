"""Small real decoders with random weights, and a tokenizer trained on the spot."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

PROSE = (
    "The harbour lay quiet. Ships came in with the tide, and left with it again! Who kept the light? "
    "An old man did, and his daughter after him. They wrote down every ship, every wind and every wave. "
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "inputs: needs a real input, fetched once and then cached")


@pytest.fixture(scope="session")
def prose() -> str:
    return PROSE * 40


@pytest.fixture(scope="session")
def tokenizer(prose: str) -> PreTrainedTokenizerFast:
    """Byte-level BPE with 300 tokens, as GPT-2's and Llama-3's are built."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator([prose], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(tokenizer_object=bpe)


def _model(family: str) -> PreTrainedModel:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 300,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,
    }
    if family == "llama":
        return LlamaForCausalLM(LlamaConfig(**shape)).eval()
    if family == "qwen3":
        return Qwen3ForCausalLM(Qwen3Config(head_dim=8, **shape)).eval()
    config = GPT2Config(
        vocab_size=300, n_embd=32, n_layer=3, n_head=4, n_positions=512, initializer_range=0.4
    )
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(params=["llama", "qwen3", "gpt2"])
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return _model(request.param)


@pytest.fixture
def llama() -> PreTrainedModel:
    return _model("llama")


@pytest.fixture
def input_ids() -> torch.Tensor:
    return torch.randint(300, (2, 24), generator=torch.Generator().manual_seed(1))
