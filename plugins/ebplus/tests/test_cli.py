"""The verbs advise and simulate from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from separata_ebplus import TimingModel
from separata_ebplus.cli import app


@pytest.fixture
def timing(tmp_path: Path) -> Path:
    made = TimingModel.from_constants(
        alpha_prefill=30e-3, beta_prefill=3e-5, alpha_decode=12e-3, beta_decode=2e-5
    )
    made.save(tmp_path / "timing.json")
    return tmp_path / "timing.json"


def run(*words: object) -> list[dict[str, object]] | dict[str, object]:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_advise(timing: Path) -> None:
    found = run("advise", "--timing", timing, "--slots", 64, "--json")
    assert found["k"] == 8  # the mean of the drawn lengths is about 256
    assert found["mode"] == "MB"


def test_simulate_writes_a_table_and_a_figure(timing: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot, table = tmp_path / "k.png", tmp_path / "out.csv"
    options = ("--slots", 8, "--requests", 100, "--plot", plot, "--out", table, "--json")
    rows = run("simulate", "--timing", timing, "--schedulers", "mb,eb1,eb,ebplus", *options)
    assert [row["scheduler"] for row in rows] == ["mb", "eb1", "eb", "ebplus"]
    assert plot.stat().st_size > 1000
    assert len(table.read_text().splitlines()) == 5
