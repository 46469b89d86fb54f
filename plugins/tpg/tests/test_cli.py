"""The words of the command line on files, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from separata_tpg.cli import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "log.csv")
    done = run("simulate", "two-state", "--out", path, "--steps", "1000", "--json")
    assert json.loads(done.stdout)["effect"] == pytest.approx(2, abs=0.2)
    return path


def test_an_estimate_comes_with_its_path_and_figure(file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra")
    figure = tmp_path / "path.png"
    found = json.loads(
        run("estimate", file, "--time", "time", "--k", "0:3", "--plot", str(figure), "--json").stdout
    )
    assert [row["k"] for row in found["path"]] == [0, 1, 2, 3]
    assert found["low"] < found["value"] < found["high"]
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_switchback_on_the_queue_is_estimated(tmp_path: Path) -> None:
    path = str(tmp_path / "queue.csv")
    run("simulate", "queue", "--out", path, "--steps", "3000", "--block", "30")
    found = json.loads(
        run("estimate", path, "--time", "time", "--block", "30min", "--k", "0,1", "--json").stdout
    )
    assert found["steps"] == 100
    assert "give the switchback's blocks" in str(run("estimate", path).exception)


def test_a_placebo_has_a_row_for_each_k(file: str) -> None:
    rows = json.loads(run("placebo", file, "--k", "0,2", "--n", "50", "--json").stdout)
    assert [row["k"] for row in rows] == [0, 2]


def test_plans_come_from_a_pilot_or_a_process(file: str, tmp_path: Path) -> None:
    rows = json.loads(run("plan", file, "--steps", "500,2000", "--k", "1", "--json").stdout)
    assert rows[0]["detectable"] == pytest.approx(2 * rows[1]["detectable"])
    process = {"transitions": [[[0.5, 0.5], [0.5, 0.5]]] * 2, "rewards": [[0, 1], [1, 2]], "horizon": 7}
    (tmp_path / "mdp.json").write_text(json.dumps(process))
    rows = json.loads(run("plan", str(tmp_path / "mdp.json"), "--steps", "50", "--k", "0", "--json").stdout)
    assert rows[0]["bias"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["estimate", "nowhere.csv"], "there is no file nowhere.csv"),
        (["estimate", "nowhere.csv", "--k", "few"], "--k is 'few'"),
        (["plan", "nowhere.json"], "nowhere.json"),
        (["simulate", "weather", "--out", "x.csv"], "system is 'weather'"),
        (["simulate", "queue", "--out", "x.csv", "--p", "1"], "p is 1.0"),
    ],
)
def test_wrong_use_says_what_was_given(words: list[str], message: str) -> None:
    assert message in str(run(*words).exception)
