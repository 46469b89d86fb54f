"""The version gate: a change that users would never get is caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with one commit of a core, a command line and a plugin."""
    for part, package in (("core", "separata"), ("cli", "separata_cli"), ("plugins/toy", "separata_toy")):
        (tmp_path / part / "src" / package).mkdir(parents=True)
        (tmp_path / part / "src" / package / "__init__.py").write_text("")
        (tmp_path / part / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0.1.0"\n')
        (tmp_path / part / "CHANGELOG.md").write_text("# Changes\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "step")


def silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from versions import silent_changes

    return silent_changes("HEAD", folder)


def change_source(folder: Path) -> None:
    (folder / "plugins/toy/src/separata_toy/__init__.py").write_text("x = 1\n")


def test_a_silent_change_is_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_source(workspace)
    assert silent(workspace, monkeypatch) == ["plugins/toy"]


def test_a_line_in_the_changelog_tells_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_source(workspace)
    (workspace / "plugins/toy/CHANGELOG.md").write_text("# Changes\n\n- x is new.\n")
    assert silent(workspace, monkeypatch) == []


def test_a_new_version_tells_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_source(workspace)
    (workspace / "plugins/toy/pyproject.toml").write_text('[project]\nname = "x"\nversion = "0.2.0"\n')
    assert silent(workspace, monkeypatch) == []


def test_a_change_of_tests_alone_needs_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "plugins/toy/tests").mkdir()
    (workspace / "plugins/toy/tests/test_x.py").write_text("")
    assert silent(workspace, monkeypatch) == []


def test_without_a_commit_it_says_how_to_use_it() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/versions.py")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "BASE" in done.stderr) == (2, True)
