"""Real inputs by name: fetched once without their dependencies, hash checked, cached, offline afterwards."""

from __future__ import annotations

from pathlib import Path

from . import cache, fetching
from . import registry as registries
from .errors import InputUnavailable, UnknownName
from .records import Input
from .registry import Registry, suggest


def open(name: str, *, registry: Registry | None = None) -> Path:
    """The local path of a named input, fetching it the first time.

    Args:
        name: ``input`` or ``slug/input``.
        registry: Where to look it up; the process's own if not given.

    Raises:
        UnknownName: If no installed plugin declares it.
        InputUnavailable: If it can't be fetched, or is not what its record names.
    """
    return locate(record(name, registry=registry))


def locate(record: Input) -> Path:
    """The local path of what a record names, fetching it the first time."""
    if record.source == "file":
        path = Path(record.file).expanduser() / record.path
        if not path.exists():
            raise InputUnavailable(f"input {record.name!r}: there is no {path}", "put the file there")
        return path
    key = f"{record.source} {record.origin} {record.path} {record.sha256}"
    folder = cache.keep(f"inputs/{record.name}", key, lambda folder: fetching.fetch(record, folder))
    return folder / record.path


def record(name: str, *, registry: Registry | None = None) -> Input:
    """The record of a named input; loads only the plugin that the catalogue names, where it can."""
    registry = registry or registries.default()
    slug, _, bare = name.rpartition("/")
    known = [slug for slug, entry in registry.known.plugins.items() if bare in entry.inputs]
    seen = []
    for candidate in [slug] if slug else dict.fromkeys([*known, *registry.slugs()]):
        if not slug and candidate not in registry.slugs():
            continue
        plugin = registry.plugin(slug) if slug else registry.loadable(candidate)
        for found in plugin.inputs if plugin else ():
            if found.name == bare:
                return found
            seen.append(f"{slug}/{found.name}" if slug else found.name)
    absent = [registry.known.plugins[slug].dist for slug in known if slug not in registry.slugs()]
    if absent:
        raise UnknownName(
            f"no installed plugin has the input {name!r}",
            f"it ships in {absent[0]}: python -m pip install {absent[0]}",
        )
    raise UnknownName(f"there is no input {name!r}", suggest(name, seen, "see `separata inputs`"))
