"""What distributions require."""

from __future__ import annotations

from typing import Any

import pytest

from separata.testing import probe

REQUIRES = {
    "a": ["b>=1", 'c; extra == "test"', 'd; extra == "plot"'],
    "b": ["E-x"],
    "c": [],
    "d": [],
    "e-x": ["a"],
}


@pytest.mark.parametrize(
    ("roots", "found"),
    [
        (["a"], {"a", "b", "e-x"}),
        (["a[test]"], {"a", "b", "c", "e-x"}),
        (["b", "a[plot]"], {"a", "b", "d", "e-x"}),
        (["missing"], set()),
    ],
)
def test_closure_follows_the_extras_that_are_named(
    roots: list[str], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def requires(name: str) -> Any:
        if name.lower() not in REQUIRES:
            raise probe.PackageNotFoundError(name)
        return REQUIRES[name.lower()]

    monkeypatch.setattr(probe, "requires", requires)
    assert probe.closure(roots) == found
