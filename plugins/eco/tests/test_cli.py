from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from separata_eco.cli import app
from separata_kit_llm import tiny

SIZES = ["--batch", 2, "--length", 16]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    place = tmp_path / "prose.txt"
    place.write_text("A weight that is stored in eight bits forgets what it was told. " * 40)
    return place


@pytest.fixture
def run() -> Callable[..., str]:
    """Run a verb; its errors come out as they are."""

    def invoke(*words: object) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


def test_train_writes_what_it_says(run: Callable[..., str], text: Path, tmp_path: Path) -> None:
    out, export = tmp_path / "run", tmp_path / "export"
    words = ["train", "--data", text, "--steps", 4, *SIZES, "--out", out, "--export", export, "--json"]
    summary = json.loads(run(*words))
    assert json.loads((out / "summary.json").read_text()) == summary
    rows = list(csv.DictReader((out / "loss.csv").open()))
    assert [row["step"] for row in rows] == ["0", "1", "2", "3"]
    assert {place.name for place in out.iterdir()} == {"loss.csv", "summary.json", "weights", "checkpoint"}
    assert tiny.load(export).config.hidden_size == 64
    again = run("train", "--data", text, "--steps", 6, *SIZES, "--out", out, "--resume", "--json")
    assert json.loads(again)["steps"] == 6
    assert len(list(csv.DictReader((out / "loss.csv").open()))) == 6


def test_memory_compares_with_master_weights(run: Callable[..., str], text: Path) -> None:
    rows = {row["kind"]: row for row in json.loads(run("memory", "tiny", "--data", text, *SIZES, "--json"))}
    assert rows["master weights"] == {"kind": "master weights", "eco": 0, "master": 4 * rows["codes"]["eco"]}


def test_drift_has_a_row_a_weight(run: Callable[..., str], text: Path) -> None:
    rows = json.loads(run("drift", "tiny", "--data", text, "--steps", 3, *SIZES, "--json"))
    assert len(rows) == 14
    assert {"norm_ratio", "cosine"} <= rows[0].keys()
