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
PAGE = ROOT / "docs/plugins.md"


def document() -> tomlkit.TOMLDocument:
    """What registry.toml says.

    Raises:
        ValueError: If it is missing, not valid TOML (with the line), or has no plugins.
    """
    try:
        found = tomlkit.parse(REGISTRY.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{REGISTRY.name} can't be read: {error}") from error
    if "plugins" not in found:
        raise ValueError(f"{REGISTRY.name} has no [plugins.SLUG]")
    return found


def declared(slug: str) -> dict[str, Any]:
    """What an installed plugin declares, in the registry's words.

    Raises:
        ValueError: If it is not installed, or can't be loaded.
    """
    from separata.errors import SeparataError
    from separata.registry import default

    try:
        plugin = default().plugin(slug)
    except SeparataError as error:
        raise ValueError(
            f"{slug} can't be asked what it declares: {error.problem}; {error.remedy}"
        ) from error
    offers = [
        {"kind": offer.kind, "name": offer.name, "summary": offer.summary, "tags": sorted(offer.tags)}
        for offer in plugin.offers
    ]
    return {
        "summary": default().installed(slug).summary,
        "offers": offers,
        "claims": [claim.name for claim in plugin.claims],
        "inputs": [record.name for record in plugin.inputs],
    }


def written() -> dict[Path, str]:
    """The files as they should be now: registry.toml, the core's copy, and the page of the documentation.

    Raises:
        ValueError: If registry.toml can't be read, or one of its plugins can't be asked.
    """
    registry = document()
    plugins: Any = registry["plugins"]
    for slug, row in plugins.items():
        for name, value in declared(slug).items():
            row[name] = _offers(value) if name == "offers" else value
    plain = registry.unwrap()
    copy = json.dumps(plain, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return {REGISTRY: tomlkit.dumps(registry), COPY: copy, PAGE: _page(plain["plugins"])}


def write() -> int:
    """Bring the files up to date."""
    try:
        files = written()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in files.items():
        path.write_text(text, "utf-8")
    return 0


def check() -> int:
    """Say which file differs from what it should be, and which plugin folder has no row."""
    try:
        # A row without a folder has nobody to ask, so the files are compared only once the rows are right.
        problems = _unmatched(set(document().unwrap()["plugins"])) or _outdated()
    except ValueError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _unmatched(rows: set[str]) -> list[str]:
    folders = {path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    return [f"plugins/{slug} has no row in registry.toml" for slug in sorted(folders - rows)] + [
        f"registry.toml names {slug}, and there is no plugins/{slug}" for slug in sorted(rows - folders)
    ]


def _outdated() -> list[str]:
    return [
        f"{path.relative_to(ROOT)} is out of date: run python tools/workspace.py catalogue"
        for path, text in written().items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]


def _page(plugins: dict[str, Any]) -> str:
    """The table of plugins for the documentation."""
    lines = [
        "# Plugins",
        "",
        "Written from `registry.toml` by `python tools/workspace.py catalogue`.",
        "",
        "| plugin | paper | what it does | offers | claims |",
        "|---|---|---|---|---|",
    ]
    for slug, row in sorted(plugins.items()):
        paper = row.get("paper", {})
        link = f"[{row['title']}]({paper['url']})" if paper.get("url") else "–"
        title = ", ".join(filter(None, [link, paper.get("venue")]))
        offers = ", ".join(f"{offer['kind']} `{slug}/{offer['name']}`" for offer in row["offers"]) or "–"
        lines.append(f"| `{slug}` | {title} | {row['summary']} | {offers} | {len(row['claims']) or '–'} |")
    return "\n".join(lines) + "\n"


def _offers(offers: list[dict[str, Any]]) -> Any:
    array = tomlkit.array().multiline(True)
    for offer in offers:
        table = tomlkit.inline_table()
        table.update(offer)
        array.append(table)
    return array
