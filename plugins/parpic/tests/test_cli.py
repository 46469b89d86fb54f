"""The words of the command line on files, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from separata_parpic.cli import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


def test_clusters_are_shown_and_written(tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    done = run("cluster", "serengeti-foodweb", "--k", "3", "--out", str(out), "--json")
    found = json.loads(done.stdout)
    assert (found["vertices"], len(found["labels"])) == (161, 161)
    assert sum(row["vertices"] for row in found["clusters"]) == 161
    assert out.read_text().startswith("vertex,cluster\n")
    assert run("cluster", "serengeti-foodweb", "--k", "3").stdout.startswith("161 vertices, 592 edges")


def test_a_sweep_lists_every_setting() -> None:
    rows = json.loads(run("sweep", "serengeti-foodweb", "--k", "2:3", "--gamma", "0,0.5", "--json").stdout)
    assert {(row["gamma"], row["n_clusters"]) for row in rows} == {(0, 2), (0, 3), (0.5, 2), (0.5, 3)}


def test_labels_are_scored_against_classes(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("vertex,cluster\na,0\nb,0\nc,1\nd,1\n")
    (tmp_path / "classes.csv").write_text("who,class\na,x\nb,x\nc,y\nd,y\ne,y\n")
    done = run("score", str(tmp_path / "labels.csv"), "--truth", str(tmp_path / "classes.csv"), "--json")
    assert json.loads(done.stdout) == {
        "vertices": 4,
        "adjusted mutual information": 1.0,
        "adjusted Rand index": 1.0,
    }


def test_a_figure_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra")
    run("plot", "serengeti-foodweb", "--k", "3", "--out", str(tmp_path / "web.png"))
    assert (tmp_path / "web.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cluster", "nowhere.csv", "--k", "2"], "there is no file nowhere.csv"),
        (["sweep", "serengeti-foodweb", "--k", "few"], "--k is 'few'"),
        (["sweep", "serengeti-foodweb", "--gamma", "much"], "--gamma is 'much'"),
        (["cluster", "serengeti-foodweb", "--k", "2", "--time", "soon"], "time is 'soon'"),
    ],
)
def test_wrong_use_says_what_was_given(words: list[str], message: str) -> None:
    assert message in str(run(*words).exception)
