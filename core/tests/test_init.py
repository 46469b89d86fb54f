"""The public names: each is there, and none is imported before it is used."""

from __future__ import annotations

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

import separata


@pytest.mark.parametrize("name", sorted(separata.__all__))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(separata, name) is not None


def test_the_public_names_are_those_that_type_checkers_see() -> None:
    stub = ast.parse(Path(separata.__file__).with_suffix(".pyi").read_text("utf-8"))
    names = [
        alias.asname for node in ast.walk(stub) if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert sorted(separata.__all__) == sorted(name for name in names if name)


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = separata.nothing_of_the_kind  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_distribution() -> None:
    assert separata.__version__ == version("separata")
