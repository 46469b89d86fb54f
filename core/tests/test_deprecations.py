"""Deprecations: a warning that says what to do, and a date that is kept."""

from __future__ import annotations

import re

import pytest

import separata
from separata import deprecations
from separata.deprecations import deprecated, overdue


@pytest.fixture(autouse=True)
def _no_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecations, "removals", {})


def test_a_deprecated_function_warns_with_its_successor_and_still_works() -> None:
    @deprecated(removed_in="9.0", instead="double()")
    def twice(x: int) -> int:
        return 2 * x

    with pytest.warns(DeprecationWarning, match=re.escape("removed in separata 9.0; use double()")):
        assert twice(2) == 4


def test_what_should_be_gone_is_named() -> None:
    @deprecated(removed_in="0.3", instead="double()")
    def twice(x: int) -> int:
        return 2 * x

    assert overdue("0.2.9") == []
    assert [name.rpartition(".")[2] for name in overdue("0.3")] == ["twice"]


def test_nothing_in_this_version_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for module in ("registry", "claims", "inputs", "verbs", "testing.conformance"):
        __import__(f"separata.{module}")
    assert overdue(separata.__version__) == []
