from __future__ import annotations

from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_kit_llm import load
from separata_oea.example_model import byte_tokenizer, trained

TOKENIZER = byte_tokenizer()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_tokens_are_the_bytes(text: str) -> None:
    assert bytes(TOKENIZER(text).input_ids) == text.encode()
    assert TOKENIZER.decode(TOKENIZER(text).input_ids) == text


def test_the_folder_is_loaded_like_any_other(folder: Path) -> None:
    model, tokenizer = load(folder)
    assert tokenizer("ab").input_ids == [97, 98]
    assert model(torch.tensor([[97, 98]])).logits.shape == (1, 2, 256)


def test_training_learns_from_the_text(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abc" * 1000)
    _, losses = trained(0, steps=3, source=str(text))
    assert losses[-1] < losses[0]
