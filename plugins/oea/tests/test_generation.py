from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from separata_kit_llm import load
from separata_oea import OEAConfig
from separata_oea.errors import PromptMissing
from separata_oea.generation import complete, read_prompts


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Any:
    return load(folder)


def test_prompts_are_lines_or_objects(tmp_path: Path) -> None:
    lines, objects = tmp_path / "a.txt", tmp_path / "a.jsonl"
    lines.write_text("one\n\ntwo\n")
    objects.write_text('{"prompt": "one"}\n{"text": "two"}\n')
    assert read_prompts(lines) == read_prompts(objects) == ["one", "two"]
    objects.write_text('{"words": "one"}\n')
    with pytest.raises(PromptMissing, match="object 1"):
        read_prompts(objects)


def test_prompts_of_different_lengths_make_one_batch(loaded: Any) -> None:
    texts, activation = complete(*loaded, ["a longer prompt", "short"], OEAConfig(k0=2), 5)
    assert len(texts) == 2
    assert activation.summary()["tokens"] == 2
    assert activation.summary()["steps"] == 4


def test_at_full_k_padding_does_not_change_a_completion(loaded: Any) -> None:
    both, _ = complete(*loaded, ["a longer prompt", "short"], OEAConfig(k0=4), 5)
    alone, _ = complete(*loaded, ["short"], OEAConfig(k0=4), 5)
    assert both[1] == alone[0]


@pytest.mark.parametrize("prompts", [[], ["fine", ""]])
def test_without_prompts_nothing_is_generated(loaded: Any, prompts: list[str]) -> None:
    with pytest.raises(PromptMissing, match="--prompt"):
        complete(*loaded, prompts, OEAConfig(), 5)
