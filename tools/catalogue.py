"""The catalogue: what registry.toml says by hand, what the plugins declare, and the core's JSON copy of both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = ROOT / "registry.toml"
COPY = ROOT / "core/src/separata/_catalog.json"


def declared(slug: str) -> dict[str, Any]:
    """What an installed plugin declares, in the registry's words."""
    from separata.registry import default

    plugin = default().plugin(slug)
    offers = [
        {"kind": offer.kind, "name": offer.name, "summary": offer.summary, "tags": sorted(offer.tags)}
        for offer in plugin.offers
    ]
    return {
        "offers": offers,
        "claims": [claim.name for claim in plugin.claims],
        "inputs": [record.name for record in plugin.inputs],
    }


def written() -> tuple[str, str]:
    """The text of registry.toml and of the copy as they should be now.

    Raises:
        ValueError: If registry.toml is not valid TOML, with the line.
    """
    try:
        document = tomlkit.parse(REGISTRY.read_text("utf-8"))
    except tomlkit.exceptions.ParseError as error:
        raise ValueError(f"{REGISTRY.name} can't be read: {error}") from error
    plugins: Any = document["plugins"]
    for slug, row in plugins.items():
        for name, value in declared(slug).items():
            if name == "offers":
                row[name] = _offers(value)
            else:
                row[name] = value
    copy = json.dumps(document.unwrap(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return tomlkit.dumps(document), copy


def write() -> int:
    """Bring both files up to date."""
    try:
        registry, copy = written()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    REGISTRY.write_text(registry, "utf-8")
    COPY.write_text(copy, "utf-8")
    return 0


def check() -> int:
    """Say which file differs from what it should be, and which plugin folder has no row."""
    try:
        registry, copy = written()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    problems = [
        f"{path.relative_to(ROOT)} is out of date: run python tools/workspace.py catalogue"
        for path, text in ((REGISTRY, registry), (COPY, copy))
        if path.read_text("utf-8") != text
    ]
    rows = set(tomlkit.parse(registry).unwrap()["plugins"])
    folders = {path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    problems += [f"plugins/{slug} has no row in registry.toml" for slug in sorted(folders - rows)]
    problems += [
        f"registry.toml names {slug}, and there is no plugins/{slug}" for slug in sorted(rows - folders)
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _offers(offers: list[dict[str, Any]]) -> Any:
    array = tomlkit.array().multiline(True)
    for offer in offers:
        table = tomlkit.inline_table()
        table.update(offer)
        array.append(table)
    return array
