"""Rendering a new plugin from the templates beside this file: ordinary files, filled in by Jinja."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from separata import __version__
from separata.catalog import catalogue
from separata.errors import InvalidRecord, WriteFailed
from separata.files import atomic_folder
from separata.names import NAME, RESERVED
from separata.records import KINDS


def render(name: str, kinds: Sequence[str], into: Path, summary: str = "") -> Path:
    """Write a complete plugin into a new folder.

    Args:
        name: The slug.
        kinds: What it offers, each of the five kinds at most once.
        into: The folder that will hold the plugin's own.
        summary: Its one-sentence summary.

    Returns:
        The new folder, ``into/name``.

    Raises:
        InvalidRecord: If the name is unsafe, reserved or taken, or a kind does not exist.
        WriteFailed: If the folder exists already, or can't be written.
    """
    _refuse_name(name)
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidRecord(f"there is no kind {kind!r}", f"the kinds are {', '.join(KINDS)}")
    folder = into / name
    if folder.exists():
        raise WriteFailed(f"{folder} exists already", "choose another name, or another place with --into")
    chosen = [kind for kind in KINDS if kind in kinds]
    with as_file(files("separata_cli") / "templates") as templates, atomic_folder(folder) as partial:
        _render_all(templates, partial, _variables(name, chosen, summary))
    return folder


def _refuse_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidRecord(
            f"{name!r} is no name for a plugin",
            "a slug is lower-case words of letters and digits joined by hyphens, such as my-method",
        )
    known = catalogue()
    if name in RESERVED:
        raise InvalidRecord(f"{name!r} is a word of separata itself", "choose another name")
    if name in known.plugins or name in known.reserved:
        raise InvalidRecord(
            f"{name!r} is taken in the registry", f"choose another name; see `separata info {name}`"
        )


def _variables(name: str, kinds: Sequence[str], summary: str) -> dict[str, Any]:
    return {
        "slug": name,
        "dist": f"separata-{name}",
        "package": f"separata_{name.replace('-', '_')}",
        "title": name.replace("-", " ").capitalize(),
        "class_prefix": "".join(word.capitalize() for word in name.split("-")),
        "summary": summary or f"The {name} method in one sentence.",
        "kinds": kinds,
        "core": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _render_all(templates: Path, folder: Path, variables: dict[str, Any]) -> None:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # these are source files, not pages
    )
    for source in sorted(templates.rglob("*.jinja")):
        relative = source.relative_to(templates)
        # kinds/kernel/... is for those who offer a kernel, and lands where its own path says.
        if relative.parts[0] == "kinds":
            if relative.parts[1] not in variables["kinds"]:
                continue
            inside = Path(*relative.parts[2:])
        else:
            inside = relative
        target = folder / environment.from_string(str(inside.with_suffix(""))).render(variables)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = environment.get_template(relative.as_posix()).render(variables).strip()
        target.write_text(f"{text}\n" if text else "", "utf-8")
