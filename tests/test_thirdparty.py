"""A plugin of somebody else's, built as a wheel, used with wheels of core and command line and nothing more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment that holds three wheels and what they declare."""
    sys.path.insert(0, str(ROOT / "tools"))
    from isolated import build_wheel, overlay

    folder = tmp_path_factory.mktemp("thirdparty")
    wheels = [build_wheel(ROOT / part, folder) for part in ("core", "cli", "tests/thirdparty")]
    # The closure of what the plugin declares; it is not installed here, so its requirements are named.
    declared = [
        "attrs",
        "lazy-loader",
        "safetensors",
        "separata",
        "separata-cli",
        "torch",
        "accelerate",
        "pytest",
    ]
    yield overlay(folder / "env", wheels, declared)
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    """Run Python there, in an empty folder."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(python), *arguments],
            cwd=tmp_path,
            env={**environment, "SEPARATA_CACHE": str(tmp_path / "cache"), **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_it_keeps_every_rule(run: Run) -> None:
    done = run("-m", "separata_cli", "check", "nile", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["counts"]) == (0, {"passed": 39, "not offered": 1}), report


def test_its_verb_runs(run: Run) -> None:
    done = run("-m", "separata_cli", "nile", "inspect", "--json", SEPARATA_NILE_STRENGTH="0.25")
    assert json.loads(done.stdout) == [
        {"setting": "strength", "value": 0.25, "from": "$SEPARATA_NILE_STRENGTH"}
    ]


def test_its_claim_is_proved_on_its_input_and_its_listener_hears_of_it(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "events"
    done = run("-m", "separata_cli", "prove", "nile", "--json", NILE_EVENTS=str(log))
    verdict = json.loads(done.stdout)[0]
    assert (verdict["holds"], round(verdict["measured"], 3)) == (True, 0.774)
    assert "ClaimChecked" in log.read_text().split()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("kernel", "nile/soft-threshold"),
        ("model", "nile/linear"),
        ("trainer", "nile/regression"),
        ("estimator", "nile/mean"),
        ("scheduler", "nile/average"),
    ],
)
def test_a_program_finds_each_of_its_offers(run: Run, kind: str, name: str) -> None:
    done = run("-c", f"import separata; print(separata.get({kind!r}, {name!r}).__name__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_search_by_kind_finds_it(run: Run) -> None:
    done = run("-m", "separata_cli", "find", "nile", "--kind", "scheduler", "--json")
    assert [row["name"] for row in json.loads(done.stdout)] == ["nile/average"]
