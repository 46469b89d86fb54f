"""The words check and new, as an author meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separata_cli.main import run


def test_new_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new", "my-method", "--into", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "pip install --editable" in said
    assert "separata check my-method" in said
    assert (tmp_path / "my-method/src/separata_my_method/kernel.py").is_file()


def test_a_path_that_is_no_plugin_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(tmp_path)]) == 2
    problem, remedy = capsys.readouterr().err.splitlines()
    assert "is no plugin" in problem
    assert "separata new" in remedy


def test_a_project_without_the_entry_point_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert run(["check", str(tmp_path)]) == 2
    assert "has 0 entry points in separata.plugins" in capsys.readouterr().err


def test_a_slug_that_is_not_there_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "no-such-plugin"]) == 2
    assert "there is no plugin 'no-such-plugin'" in capsys.readouterr().err


def test_a_broken_rule_exits_with_1_and_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["new", "my-method", "--into", str(tmp_path)])
    kernel = tmp_path / "my-method/src/separata_my_method/kernel.py"
    kernel.write_text(kernel.read_text().replace("softshrink(x, level)", "softshrink(x, level) * 1.5"))
    capsys.readouterr()
    assert run(["check", str(tmp_path / "my-method"), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    failed = [row["check"] for row in report["checks"] if row["state"] == "failed"]
    assert failed == ["agrees-with-reference"]
