"""A small mixture of experts trained here on real text, to try everything on: bytes in, bytes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from separata_kit_llm import read_text, tiny

TEXT = "python-topics"
STEPS = 350


def texts(source: str = TEXT) -> tuple[Tensor, Tensor]:
    """Bytes to train on, and the last tenth of the text, which training never sees."""
    return tiny.held_out(tiny.byte_tokens(read_text(source)))


def trained(seed: int, steps: int = STEPS, source: str = TEXT) -> tuple[Any, list[float]]:
    """Three layers of 32 experts, four a token, trained on 16 windows of 128 bytes a step.

    Returns:
        The model and the loss of each step in nats.
    """
    model = tiny.qwen3_moe(seed=seed)
    losses = tiny.pretrain(model, texts(source)[0], steps=steps, seed=seed)
    return model, losses


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer whose ids are the bytes of UTF-8.

    >>> byte_tokenizer()("aé").input_ids
    [97, 195, 169]
    """
    # A byte-level vocabulary writes bytes as printable characters: those that are printable in Latin-1 as
    # themselves, the others, in order, from U+0100 on.
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {
        byte: chr(0x100 + place) for place, byte in enumerate(others)
    }
    tokenizer: Any = Tokenizer(
        models.BPE(vocab={letter: byte for byte, letter in letters.items()}, merges=[])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast
    made: PreTrainedTokenizerFast = make(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
    return made


def save(model: Any, folder: str | Path) -> None:
    """Write the model and its tokenizer as a Hugging Face folder."""
    tiny.save(model, folder)
    byte_tokenizer().save_pretrained(folder)
