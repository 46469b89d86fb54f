"""Settings outside their range say so."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from separata.config import resolve
from separata.errors import SeparataError
from separata_xkv.config import EvaluationConfig, StudyConfig, XKVConfig
from separata_xkv.errors import InvalidSetting


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("ratio", 0.5),
        ("ratio", math.nan),
        ("window", 0),
        ("rank_key", 0),
        ("mode", "sparse"),
        ("solver", "lanczos"),
        ("grouping", "random"),
        ("budget", 0),
        ("chunk", 0),
        ("outlier_chunks", -1),
        ("min_length", 0),
        ("similarity", 1.5),
        ("recompress_every", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=f"{setting} is") as caught:
        XKVConfig(**{setting: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SeparataError)


def test_a_budget_smaller_than_a_chunk_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="budget is 4 tokens and chunk is 8"):
        XKVConfig(budget=4)


def test_a_rank_of_values_alone_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="rank_key is not given"):
        XKVConfig(rank_value=8)


@pytest.mark.parametrize("cls", [XKVConfig, StudyConfig, EvaluationConfig])
def test_every_setting_explains_itself(cls: type[Any]) -> None:
    assert all(field.metadata["help"].endswith(".") for field in attrs.fields(cls))


def test_lists_come_from_words_with_commas() -> None:
    config = resolve(EvaluationConfig, overrides={"ratio": "2,4", "window": "1,3"}).value
    assert (config.ratio, config.window) == ((2.0, 4.0), (1, 3))
