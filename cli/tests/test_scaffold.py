"""A new plugin: complete, clean and checked as it is rendered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from separata.errors import InvalidRecord, WriteFailed
from separata.records import KINDS
from separata_cli import scaffold
from separata_cli.main import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin with an offer of each kind."""
    return scaffold.render("zz-all", KINDS, tmp_path_factory.mktemp("new"))


def test_it_passes_its_checks_untouched(everything: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["check", str(everything), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["counts"]) == (0, {"passed": 39, "not offered": 1}), report


def test_its_own_tests_are_there_for_each_kind(everything: Path) -> None:
    names = {path.name for path in (everything / "tests").iterdir()}
    assert names == {"test_conformance.py", *(f"test_{kind}.py" for kind in KINDS)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone_is_clean_for_ruff(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    folder = scaffold.render(f"zz-{kind}", [kind], tmp_path / "plugins")
    # Rules as for a plugin inside this repository, which are stricter than ruff's own.
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "core").symlink_to(ROOT / "core")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_it_is_clean_for_strict_types(everything: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(everything / ".mypy"), "-p"]
    done = subprocess.run(
        [*command, "separata_zz_all"], cwd=everything / "src", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["My-Method", "../evil", "a b", "-x", "x_y", "", "1st"])
def test_an_unsafe_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="no name for a plugin"):
        scaffold.render(name, ["kernel"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_word_of_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="a word of separata itself"):
        scaffold.render("prove", ["kernel"], tmp_path)


def test_a_slug_kept_in_the_registry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="taken in the registry"):
        scaffold.render("xkv", ["kernel"], tmp_path)


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(WriteFailed, match="exists already"):
        scaffold.render("mine", ["kernel"], tmp_path)
    assert (tmp_path / "mine/notes.txt").read_text() == "keep"


def test_a_kind_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="there is no kind 'kernal'"):
        scaffold.render("mine", ["kernal"], tmp_path)
