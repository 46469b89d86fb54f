from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from separata_kit_llm import load
from separata_oea.cli import app
from separata_oea.errors import InvalidSetting, PromptMissing


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run a verb; its errors come out as they are."""

    def invoke(*words: object) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return invoke


def test_example_writes_a_model_that_loads(run: Callable[..., Result], text: Path, tmp_path: Path) -> None:
    out = tmp_path / "moe"
    found = json.loads(run("example", out, "--text", text, "--steps", 1, "--json").stdout)
    assert found["steps"] == 1
    assert load(out)[0].config.num_experts == 32


def test_profile_writes_table_and_figure(
    run: Callable[..., Result], folder: Path, text: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "study"
    sizes = ["--batch", 4, "--rows", 4, "--prompt-tokens", 4, "--tokens", 6]
    result = run("profile", folder, "--text", text, *sizes, "--sweep", "1,2", "--out", out)
    assert "cross entropy" in result.output
    assert {file.name for file in out.iterdir()} == {"profile.csv", "profile.json", "pareto.png"}
    rows = list(csv.DictReader((out / "profile.csv").open()))
    assert len(rows) == len(json.loads((out / "profile.json").read_text())) == 5 * 3
    assert (out / "pareto.png").read_bytes().startswith(b"\x89PNG")


def test_generate_says_what_was_loaded(run: Callable[..., Result], folder: Path) -> None:
    words = ["generate", folder, "--prompt", "one", "--prompt", "two", "--max-new-tokens", 4, "--k0", 1]
    found = json.loads(run(*words, "--json").stdout)
    assert [pair["prompt"] for pair in found["completions"]] == ["one", "two"]
    assert found["experts_hit"] <= 2 < found["plain_experts_hit"]
    assert "plain experts hit" in run(*words).output


def test_generate_asks_for_a_prompt(run: Callable[..., Result], folder: Path) -> None:
    with pytest.raises(PromptMissing):
        run("generate", folder)


def test_bench_writes_steps_line_and_figure(
    run: Callable[..., Result], folder: Path, text: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "timing"
    sizes = ["--batch", 4, "--prompt-tokens", 4, "--steps", 2, "--rounds", 1]
    found = json.loads(run("bench", folder, "--text", text, *sizes, "--out", out, "--json").stdout)
    assert [row["routing"] for row in found["routings"]] == ["plain", "k0 = 1", "k0 = 2", "k0 = 3"]
    assert found["line"]["steps"] == 8
    assert {file.name for file in out.iterdir()} == {"steps.csv", "fit.json", "time.png"}


def test_a_sweep_is_numbers(run: Callable[..., Result], folder: Path, text: Path) -> None:
    with pytest.raises(InvalidSetting, match="1,2,4"):
        run("profile", folder, "--text", text, "--sweep", "one")
