"""The words of the command line, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from separata_tuf import MDP
from separata_tuf.cli import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


def test_a_plan_prints_both_kinds_of_periods(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra")
    figure = tmp_path / "periods.png"
    words = (
        "plan",
        "--gamma",
        "0.9",
        "--budget",
        "1e5",
        "--update-every",
        "4",
        "--plot",
        str(figure),
        "--json",
    )
    found = json.loads(run(*words).stdout)
    assert found["environment_steps"] == 400_000
    assert sum(found["lengths"]) == found["budget"] == 100_000
    assert found["schedules"][0]["bound"] < found["schedules"][1]["bound"]
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_budget_follows_from_an_error() -> None:
    found = json.loads(run("plan", "--gamma", "0.9", "--error", "0.1", "--json").stdout)
    assert found["schedules"][0]["bound"] <= 0.1


def test_an_audit_counts_environment_steps() -> None:
    found = json.loads(
        run("audit", "--interval", "4000", "--steps", "1e5", "--gamma", "0.9", "--json").stdout
    )
    assert found["periods"] == 25
    assert found["lost"] > 1


def test_a_process_from_a_file_is_learned(process: MDP, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra")
    np.savez(tmp_path / "mdp.npz", P=process.transitions, R=process.rewards, noise=1.0)
    out, figure = tmp_path / "rows.csv", tmp_path / "errors.png"
    words = (
        "--gamma",
        "0.9",
        "--budgets",
        "1000,4000",
        "--counts",
        "5,20",
        "--seeds",
        "2",
        "--out",
        str(out),
    )
    done = run("tabular", str(tmp_path / "mdp.npz"), *words, "--plot", str(figure), "--json")
    rows = json.loads(done.stdout)
    assert [(row["schedule"], row["budget"]) for row in rows] == [
        ("geometric", 1000),
        ("constant", 1000),
        ("geometric", 4000),
        ("constant", 4000),
    ]
    assert len(out.read_text().splitlines()) == 5
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_an_agent_is_trained_judged_and_saved(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="an extra")
    done = run(
        "dqn",
        "CartPole-v1",
        "--steps",
        "1500",
        "--first",
        "20",
        "--episodes",
        "2",
        "--out",
        str(tmp_path / "a.zip"),
        "--json",
    )
    found = json.loads(done.stdout)
    assert found["updates"] == 125
    assert found["refreshes"] >= 4
    assert found["mean_return"] > 0
    assert (tmp_path / "a.zip").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "--gamma", "1"], "gamma is 1.0"),
        (["plan", "--budget", "many"], "'many'"),
        (["plan", "--coverage", "0"], "coverage is 0.0"),
        (["audit", "--interval", "10000", "--steps", "100"], "an interval of 2500"),
        (["tabular", "Nowhere-v1"], "Nowhere"),
        (["tabular", "CartPole-v1"], "has no table P"),
        (["tabular", "nowhere.npz"], "nowhere.npz"),
        (["dqn", "CartPole-v1", "--schedule", "slow"], "schedule is 'slow'"),
        (["dqn", "Pendulum-v1"], "DQN needs Discrete actions"),
    ],
)
def test_wrong_use_says_what_was_given(words: list[str], message: str) -> None:
    if words[0] == "dqn":
        pytest.importorskip("stable_baselines3", reason="an extra")
    assert message in str(run(*words).exception)
