"""Loading one plugin: import its hook module, check it against the hooks, and collect its records."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

import attrs
import pluggy

from . import hookspecs
from .discovery import Installed
from .errors import BrokenPlugin
from .events import Event
from .records import Benchmark, Claim, Command, Input, Offer, Paper

R = TypeVar("R", Offer, Command, Claim, Benchmark, Input)


@attrs.frozen
class Plugin:
    """Everything that a loaded plugin declares."""

    slug: str
    dist: str
    version: str
    paper: Paper | None
    offers: tuple[Offer, ...]
    commands: tuple[Command, ...]
    claims: tuple[Claim, ...]
    benchmarks: tuple[Benchmark, ...]
    inputs: tuple[Input, ...]


class Loader:
    """The pluggy manager with the one way into it."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._lock = RLock()
        self._silenced: set[str] = set()

    def load(self, found: Installed) -> Plugin:
        """Import a plugin's hook module and return what it declares.

        Raises:
            BrokenPlugin: If it does not import, implements a hook that does not exist, or declares nonsense.
        """
        with self._lock:
            try:
                module = import_module(found.module)
                self._register(module, found.slug)
                return self._declared(module, found)
            # A plugin that calls sys.exit() while it is imported is as broken as one that raises.
            except BaseException as error:
                self._forget(found.slug)
                if isinstance(error, KeyboardInterrupt):
                    raise
                raise _broken(found, error) from error

    def listen(self, listener: object) -> None:
        """Add something with a ``separata_event`` hook."""
        self._manager.register(listener)

    def call(self, hook: str, **arguments: Any) -> Any:
        """Call one hook of everything that is registered."""
        return getattr(self._manager.hook, hook)(**arguments)

    def emit(self, event: Event) -> None:
        """Tell the listeners one by one, so that a faulty one costs only itself."""
        for implementation in self._manager.hook.separata_event.get_hookimpls():
            name = implementation.plugin_name
            try:
                implementation.function(*[event for _ in implementation.argnames])
            except Exception as error:
                if name not in self._silenced:
                    self._silenced.add(name)
                    print(
                        f"listener {name} failed and is not reported again: {type(error).__name__}: {error}",
                        file=sys.stderr,
                    )

    def _register(self, module: Any, slug: str) -> None:
        self._manager.register(module, name=slug)
        self._manager.check_pending()

    def _forget(self, slug: str) -> None:
        if self._manager.get_plugin(slug) is not None:
            self._manager.unregister(name=slug)

    def _declared(self, module: Any, found: Installed) -> Plugin:
        papers = self._only(module, "separata_paper")
        return Plugin(
            found.slug,
            found.dist,
            found.version,
            papers[0] if papers else None,
            self._collect(module, "separata_offers", Offer),
            self._collect(module, "separata_commands", Command),
            self._collect(module, "separata_claims", Claim),
            self._collect(module, "separata_benchmarks", Benchmark),
            self._collect(module, "separata_inputs", Input),
        )

    def _only(self, module: Any, hook: str) -> list[Any]:
        others = [plugin for plugin in self._manager.get_plugins() if plugin is not module]
        results: list[Any] = self._manager.subset_hook_caller(hook, others)()
        return results

    def _collect(self, module: Any, hook: str, record: type[R]) -> tuple[R, ...]:
        records: list[R] = []
        for yielded in self._only(module, hook):
            if not isinstance(yielded, Iterable):
                raise TypeError(f"{hook} returned {yielded!r}; it yields {record.__name__} records")
            records.extend(yielded)
        seen: set[tuple[object, ...]] = set()
        for one in records:
            if not isinstance(one, record):
                raise TypeError(f"{hook} yielded {one!r}; it yields {record.__name__} records")
            key = _identity(one)
            if key in seen:
                raise ValueError(f"{hook} yields {' '.join(map(str, key))} twice")
            seen.add(key)
        return tuple(records)


def _identity(record: Offer | Command | Claim | Benchmark | Input) -> tuple[object, ...]:
    if isinstance(record, Offer):
        return record.kind, record.name
    return (record.object,) if isinstance(record, Command) else (record.name,)


def _broken(found: Installed, error: BaseException) -> BrokenPlugin:
    detail = " ".join(str(error).split())
    return BrokenPlugin(
        f"plugin {found.slug!r} ({found.dist} {found.version}) is broken: {type(error).__name__}: {detail}",
        f"install what it needs, or uninstall it: python -m pip uninstall {found.dist}",
    )
