"""What the command line's tests share: a site that is all there is installed, and a way to run one command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from separata import discovery, registry
from separata.catalog import Catalogue
from separata.testing import Site
from separata_cli.main import run


@attrs.frozen
class Done:
    """What one command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _fresh_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with an empty cache, a wide terminal, and an environment that asks for nothing."""
    monkeypatch.setenv("SEPARATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    for name in [name for name in os.environ if name.startswith(("SEPARATA_", "_SEPARATA_"))]:
        if name != "SEPARATA_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site whose plugins are the only ones that this process and those it starts can see."""
    for name in _plugin_modules():
        monkeypatch.delitem(sys.modules, name)
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    monkeypatch.setenv("PYTHONPATH", made.environment()["PYTHONPATH"])
    monkeypatch.setattr(discovery, "scan", made.installed)
    monkeypatch.setattr(registry, "catalogue", lambda: Catalogue({}, frozenset()))
    yield made
    registry.default.cache_clear()
    for name in _plugin_modules():
        del sys.modules[name]


@pytest.fixture
def separata(site: Site, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run one command line as a new process would: with a registry and an environment of its own."""

    def command(*arguments: str) -> Done:
        registry.default.cache_clear()
        capfd.readouterr()
        before = dict(os.environ)
        try:
            code = run(arguments)
        finally:
            os.environ.clear()
            os.environ.update(before)
        captured = capfd.readouterr()
        return Done(code, captured.out, captured.err)

    return command


def _plugin_modules() -> list[str]:
    return [name for name in sys.modules if name.startswith("separata_") and "separata_cli" not in name]
