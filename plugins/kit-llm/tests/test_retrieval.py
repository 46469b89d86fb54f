from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from separata_kit_llm import needle, read_tasks, string_match
from separata_kit_llm.errors import InvalidOption, SourceNotFound, TextTooShort, UnreadableText

# The fixtures hold no state that an example could change.
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)


@SHARED
@given(length=st.integers(150, 900), depth=st.floats(0, 1))
def test_the_prompt_has_exactly_the_length(
    tokenizer: PreTrainedTokenizerFast, prose: str, length: int, depth: float
) -> None:
    made = needle(prose, tokenizer, length, depth)
    assert made.input_ids.shape == (1, length)
    assert tokenizer.decode(made.input_ids[0]) == made.prompt
    assert made.prompt.count("48217") == 1
    assert made.prompt.endswith("The secret number of the harbour gate is")
    assert tokenizer.decode(made.answer_ids[0]) == " 48217"


@pytest.mark.parametrize("depth", [0, 0.25, 0.5, 0.75, 1])
def test_the_needle_stands_at_its_depth(tokenizer: PreTrainedTokenizerFast, prose: str, depth: float) -> None:
    made = needle(prose, tokenizer, 800, depth, key="the tower", answer="7")
    place = made.prompt.index("The secret number of the tower is 7.") / len(made.prompt)
    # The nearest sentence end is at most half a sentence away, and the question takes the last few percent.
    assert place == pytest.approx(depth, abs=0.12)


def test_the_needle_follows_a_whole_sentence(tokenizer: PreTrainedTokenizerFast, prose: str) -> None:
    before = needle(prose, tokenizer, 600, 0.5).prompt.partition(" The secret")[0]
    assert before[-1] in ".!?"
    assert prose.startswith(before)


def test_without_punctuation_it_follows_a_whole_line(tokenizer: PreTrainedTokenizerFast) -> None:
    verse = "ships came in with the tide\nand left with it again\n" * 60
    before = needle(verse, tokenizer, 400, 0.5).prompt.partition(" The secret")[0]
    assert before.endswith(("tide", "again"))


@pytest.mark.parametrize(("length", "depth"), [(10, 0.5), (400, -0.1), (400, 1.5)])
def test_out_of_range_is_refused(
    tokenizer: PreTrainedTokenizerFast, prose: str, length: int, depth: float
) -> None:
    with pytest.raises(InvalidOption):
        needle(prose, tokenizer, length, depth)


def test_a_short_text_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(TextTooShort):
        needle("Ships came in.", tokenizer, 400, 0.5)


def test_ruler_lines(tmp_path: Path) -> None:
    path = tmp_path / "niah.jsonl"
    lines = [
        {"index": 0, "input": "Where?", "outputs": ["here", "there"]},
        {"index": 1, "input": "What?", "outputs": [42], "answer_prefix": " It is"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    first, second = read_tasks(path)
    assert (first.prompt, first.answers) == ("Where?", ("here", "there"))
    assert (second.prompt, second.answers) == ("What? It is", ("42",))
    assert second.record["index"] == 1


def test_longbench_lines(tmp_path: Path) -> None:
    path = tmp_path / "qasper.jsonl"
    path.write_text(json.dumps({"context": "Long.", "input": "Why?", "answers": ["because"], "length": 9}))
    assert read_tasks(path)[0].prompt == "Long.\n\nWhy?"


@pytest.mark.parametrize("line", [{"input": "x"}, {"input": "x", "outputs": []}, {"outputs": ["y"]}])
def test_other_lines_are_refused(tmp_path: Path, line: dict[str, object]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(UnreadableText, match="example 1"):
        read_tasks(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"gone\.jsonl"):
        read_tasks(tmp_path / "gone.jsonl")


def test_string_match_is_rulers() -> None:
    assert string_match("The numbers are 12 and Blue.", ["12", "blue"]) == 1
    assert string_match("12 only", ["12", "blue"]) == 0.5
    assert string_match("12 only", ["12", "blue"], match="any") == 1
    assert string_match("none", ["12"], match="any") == 0
