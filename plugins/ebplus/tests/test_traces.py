"""Traces survive files; a bad row is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from separata_ebplus import read_trace
from separata_ebplus.errors import InvalidTrace
from separata_ebplus.traces import Trace, write_trace


@pytest.mark.parametrize("name", ["trace.csv", "trace.jsonl"])
def test_a_trace_survives_a_file(tmp_path: Path, name: str) -> None:
    made = Trace(np.array([0.0, 1.5, 2.0]), np.array([3, 4, 5]), np.array([6, 7, 8]))
    write_trace(made, tmp_path / name)
    assert read_trace(tmp_path / name).output_tokens.tolist() == [6, 7, 8]


def test_azures_columns_and_dates_are_read(tmp_path: Path) -> None:
    file = tmp_path / "azure.csv"
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.95,396,109\n"
    file.write_text(text)
    assert read_trace(file).arrival.tolist() == pytest.approx([0, 4.27], abs=1e-6)


def test_a_bad_row_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("arrival,prompt_tokens,output_tokens\n0,3,4\n1,,5\n")
    with pytest.raises(InvalidTrace, match="row 3: there is no prompt_tokens"):
        read_trace(file)


def test_a_missing_column_is_named_with_its_row(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(
        '{"arrival": 0, "prompt_tokens": 3, "output_tokens": 4}\n{"arrival": 1, "output_tokens": 4}\n'
    )
    with pytest.raises(InvalidTrace, match="row 2: there is no prompt_tokens"):
        read_trace(file)


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InvalidTrace, match="no request"):
        read_trace(tmp_path / "empty.jsonl")
