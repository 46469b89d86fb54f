"""Whether a model finds what stands far back in its prompt: needles in real text, RULER and LongBench tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import attrs
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from .errors import InvalidOption, TextTooShort, UnreadableText
from .text import records

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
LINE_END = re.compile(r"\n+")
MARGIN = 64  # characters beyond the haystack: cutting it in two can merge a few tokens


@attrs.frozen
class Needle:
    """A prompt that hides one fact in a long text and ends where the fact is to be repeated.

    Args:
        prompt: The prompt as text.
        answer: What a model that found the needle continues with.
        input_ids: A ``1 x length`` tensor: the prompt.
        answer_ids: A ``1 x answer length`` tensor: the continuation.
    """

    prompt: str
    answer: str
    input_ids: Tensor
    answer_ids: Tensor


@attrs.frozen
class Task:
    """One example of a long-context benchmark.

    Args:
        prompt: What the model is given.
        answers: Reference answers.
        record: The line as it was read.
    """

    prompt: str
    answers: tuple[str, ...]
    record: dict[str, Any]


def needle(
    text: str,
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    depth: float,
    *,
    key: str = "the harbour gate",
    answer: str = "48217",
) -> Needle:
    """A needle-in-a-haystack prompt of an exact number of tokens, built from real text.

    The needle is a sentence of its own, put at the sentence end nearest to the depth (at a line end, if the text
    has no punctuation). The prompt ends with the needle's own first words, so that base and instruction-tuned
    models can both answer by continuing.

    Args:
        text: The haystack; its beginning is used.
        tokenizer: The model's tokenizer.
        length: Tokens of the prompt.
        depth: Where the needle stands, 0 (the beginning) to 1 (the end).
        key: What the number belongs to.
        answer: The number.

    Raises:
        InvalidOption: If ``depth`` is no share, or ``length`` leaves no room for a haystack.
        TextTooShort: If the text has too few tokens.
    """
    if not 0 <= depth <= 1:
        raise InvalidOption(f"depth is {depth}", "depth is 0 (the beginning) to 1 (the end)")
    cue = f"The secret number of {key} is"
    start: list[int] = tokenizer("").input_ids
    fact, question = _ids(tokenizer, f" {cue} {answer}. "), _ids(tokenizer, f"\n\n{cue}")
    room = length - len(start) - len(fact) - len(question)
    if room < 1:
        raise InvalidOption(
            f"length is {length}", f"needle and question take {length - room} tokens: leave room for text"
        )
    before, after = _split(text, tokenizer, room, depth)
    input_ids = [*start, *before, *fact, *after, *question]
    answer_ids = _ids(tokenizer, f" {answer}")
    return Needle(
        str(tokenizer.decode(input_ids[len(start) :])),
        answer,
        torch.tensor([input_ids]),
        torch.tensor([answer_ids]),
    )


def _split(
    text: str, tokenizer: PreTrainedTokenizerBase, room: int, depth: float
) -> tuple[list[int], list[int]]:
    """The haystack's tokens before and after the needle, ``room`` of them."""
    # No tokenizer in use makes tokens of more than 16 characters on average; the first cut saves encoding it all.
    text = text[: 16 * room + MARGIN]
    encoded: Any = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    if len(encoded.input_ids) < room:
        raise TextTooShort(
            f"the text has {len(encoded.input_ids)} tokens, the haystack needs {room}", "give a longer text"
        )
    end = encoded.offset_mapping[room - 1][1]
    found = list(SENTENCE_END.finditer(text, 0, end)) or list(LINE_END.finditer(text, 0, end))
    ends = [0, *(match.end() for match in found), end]
    cut = min(ends, key=lambda place: abs(place - depth * end))
    before = _ids(tokenizer, text[:cut].rstrip())[:room]
    after = _ids(tokenizer, text[cut : end + MARGIN])
    wanted = room - len(before)
    if len(after) < wanted:
        raise TextTooShort(f"the text ends within {MARGIN} characters of the haystack", "give a longer text")
    return before, after[:wanted]


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False).input_ids
    return ids


def read_tasks(path: str | Path) -> list[Task]:
    """The examples of a RULER or LongBench file: JSONL, one example a line.

    RULER has ``input`` and ``outputs`` (and ``answer_prefix`` in newer versions, which ends the prompt);
    LongBench has ``context``, ``input`` and ``answers``.

    Raises:
        SourceNotFound: If there is no such file.
        UnreadableText: If a line has not these fields.
    """
    return [_task(path, number, record) for number, record in enumerate(records(path), 1)]


def _task(path: str | Path, number: int, record: dict[str, Any]) -> Task:
    answers = record.get("outputs", record.get("answers"))
    if isinstance(answers, str):
        answers = [answers]
    prompt = record.get("input")
    if not isinstance(prompt, str) or not isinstance(answers, list) or not answers:
        raise UnreadableText(
            f"{path}, example {number}, has the fields {', '.join(record)}",
            "RULER's lines have 'input' and 'outputs', LongBench's 'context', 'input' and 'answers'",
        )
    if record.get("context"):
        prompt = f"{record['context']}\n\n{prompt}"
    return Task(prompt + str(record.get("answer_prefix", "")), tuple(map(str, answers)), record)


def string_match(prediction: str, answers: Iterable[str], *, match: Literal["all", "any"] = "all") -> float:
    """RULER's score of one prediction: the share of the answers that it contains, whatever the case.

    Args:
        prediction: What the model wrote.
        answers: Reference answers.
        match: ``all`` gives the share that is found; ``any`` (RULER's QA tasks) gives 1 if one is.

    Returns:
        A score from 0 to 1.
    """
    found = [answer.lower() in prediction.lower() for answer in answers]
    return float(any(found)) if match == "any" else sum(found) / len(found)
