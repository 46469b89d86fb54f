"""What the core's tests share: a user without settings, and a site of pretend-installed plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from separata.catalog import Catalogue
from separata.registry import Registry
from separata.testing import Site


@pytest.fixture(autouse=True)
def _fresh_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with an empty cache whose environment asks for nothing."""
    monkeypatch.setenv("SEPARATA_CACHE", str(tmp_path / "cache"))
    for variable in ("SEPARATA_PLUGINS", "SEPARATA_STRICT", "SEPARATA_DEBUG"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site on ``sys.path``; no plugin's module is loaded before the test or left behind by it."""
    for name in _plugin_modules():
        monkeypatch.delitem(sys.modules, name)
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    for name in _plugin_modules():
        del sys.modules[name]


@pytest.fixture
def registry_of(site: Site) -> Callable[..., Registry]:
    """Make a registry that sees the site's plugins and, if not told otherwise, an empty catalogue."""

    def make(known: Catalogue | None = None, **options: object) -> Registry:
        return Registry(site.installed(), known=known or Catalogue({}, frozenset()), **options)  # type: ignore[arg-type]

    return make


def _plugin_modules() -> list[str]:
    return [name for name in sys.modules if name.startswith("separata_") and "separata_cli" not in name]
