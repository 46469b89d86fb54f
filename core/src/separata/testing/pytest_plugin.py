"""The kit in pytest: one test a check, and a registry that sees nothing but what the test adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conformance import Case
    from .site import Site


def conformance_tests(slug: str) -> Callable[..., None]:
    """A test function with one case for each check of a plugin.

    >>> test_conformance = conformance_tests("xkv")  # in tests/test_conformance.py  # doctest: +SKIP
    """
    from .conformance import Outcome, Report, cases

    found = list(cases(slug))
    outcomes: list[Outcome] = []

    @pytest.mark.parametrize("case", [*found, None], ids=[*map(_id, found), "enough-checks-ran"])
    def test(case: Case | None) -> None:
        if case is None:
            # The last case counts; a run that selects some checks only has nothing to count.
            if len(outcomes) == len(found):
                assert not Report(slug, tuple(outcomes)).missing
            return
        outcome = case.run()
        outcomes.append(outcome)
        if outcome.state == "failed":
            pytest.fail(f"{outcome.case.check.says} {outcome.reason}", pytrace=False)
        if outcome.state == "not offered":
            pytest.skip(outcome.reason)
        if outcome.state == "expected failure":
            pytest.xfail(outcome.reason)

    return test


@pytest.fixture
def isolated_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site whose plugins are the only ones that this process's registry sees; add to it before the first look."""
    import sys

    from separata import discovery, registry

    from .site import Site

    site = Site(tmp_path / "site")
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(site.folder))
    monkeypatch.setattr(discovery, "scan", site.installed)
    registry.default.cache_clear()
    yield site
    registry.default.cache_clear()
    # Another test may add a plugin of the same name.
    for name in set(sys.modules) - before:
        if name.startswith("separata_") and not name.startswith("separata_cli"):
            del sys.modules[name]


def _id(case: Case) -> str:
    return f"{case.subject}-{case.check.name}"
