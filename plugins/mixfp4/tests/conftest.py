"""Tensors of several kinds, and a small decoder with a tokenizer."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = 64


@pytest.fixture
def tensors():
    """Gaussian, flat, heavy-tailed, and a mixture with zeros; float64, 8 x 96."""
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(8, 96, generator=generator, dtype=torch.float64)
    mixed = normal**3
    mixed[2:4] = normal[2:4].sign()
    mixed[5, :32] = 0
    return {
        "gaussian": normal,
        "flat": normal.sign() * (1 + 0.05 * normal),
        "heavy": normal**5,
        "mixed": mixed,
    }


@pytest.fixture
def llama():
    """Two layers of width 32."""
    config = LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=48,
        vocab_size=WORDS,
        tie_word_embeddings=True,
        eos_token_id=None,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).train(False)


@pytest.fixture
def tokenizer():
    """Words w0 to w63."""
    words = Tokenizer(models.WordLevel({f"w{number}": number for number in range(WORDS)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0")


@pytest.fixture
def text():
    """A hundred words."""
    return " ".join(f"w{1 + 7 * number % (WORDS - 1)}" for number in range(100))


@pytest.fixture
def folder(llama, tokenizer, tmp_path):
    """The decoder on disk."""
    llama.save_pretrained(tmp_path / "llama")
    tokenizer.save_pretrained(tmp_path / "llama")
    return tmp_path / "llama"
