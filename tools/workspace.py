"""The workspace tool: install the parts editable, write and check the catalogue, say what changed.

python tools/workspace.py prepare                     third-party packages, once for all environments
python tools/workspace.py install core cli plugins    the parts, editable (or one of them: plugins/xkv)
python tools/workspace.py requirements core plugins   what the parts need from the package index
python tools/workspace.py catalogue                   write registry.toml's generated lines and the core's copy
python tools/workspace.py check                       fail where the registry and the parts differ
python tools/workspace.py changed BASE                slugs to test again after the changes since BASE
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import shared

ROOT = Path(__file__).resolve().parents[1]


def parts(names: Iterable[str], root: Path = ROOT) -> list[Path]:
    """The distributions' folders; ``plugins`` stands for all of them."""
    found: list[Path] = []
    for name in names:
        folder = root / name
        if name == "plugins":
            found += sorted(path.parent for path in folder.glob("*/pyproject.toml"))
        elif (folder / "pyproject.toml").is_file():
            found.append(folder)
        else:
            raise SystemExit(f"{name} is no part of the workspace: there is no {folder / 'pyproject.toml'}")
    return found


def settled() -> list[str]:
    """The plugins that CI proves and isolates; an experimental one says in its README what is not settled."""
    rows = tomllib.loads((ROOT / "registry.toml").read_text("utf-8"))["plugins"]
    return [slug for slug, row in sorted(rows.items()) if row["maturity"] != "experimental"]


def project(part: Path) -> dict[str, object]:
    """The [project] table of a part."""
    table: dict[str, object] = tomllib.loads((part / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def prepare() -> None:
    """Let this environment see the third-party packages that the whole workspace needs."""
    shared.install(
        [*requirements(["core", "cli", "plugins"]), *shared.group("lint", "types", "test", "docs")]
    )
    shared.attach(Path(sysconfig.get_path("purelib")))


def install(names: Sequence[str]) -> None:
    """Install parts editable: every wheel is built in this process, then one pip call installs them all."""
    with tempfile.TemporaryDirectory() as folder:
        wheels = [build_editable(part, Path(folder)) for part in parts(names)]
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--force-reinstall",
        ]
        subprocess.run([*command, *map(str, wheels)], check=True)


def build_editable(part: Path, folder: Path) -> Path:
    """One editable wheel through the backend's own hook (PEP 660), without a process or an environment of its own."""
    backend = import_module(
        tomllib.loads((part / "pyproject.toml").read_text("utf-8"))["build-system"]["build-backend"]
    )
    before = Path.cwd()
    os.chdir(part)
    try:
        name: str = backend.build_editable(str(folder))
        return folder / name
    finally:
        os.chdir(before)


def requirements(names: Sequence[str], root: Path = ROOT) -> Iterator[str]:
    """What the parts need from the package index: their requirements, less the workspace's own distributions.

    The extra ``full`` is left out: heavy things that only claims at full scale or single comparisons need.
    """
    own = {_dist(str(project(part)["name"])) for part in parts(["core", "cli", "plugins"], root)}
    found: set[str] = set()
    for part in parts(names, root):
        table = project(part)
        extras = table.get("optional-dependencies", {})
        listed = [*_strings(table.get("dependencies", []))]
        for name, extra in extras.items() if isinstance(extras, dict) else ():
            listed += _strings(extra) if name != "full" else []
        found |= {text for text in listed if _dist(text) not in own}
    yield from sorted(found)


def changed(base: str, root: Path = ROOT) -> list[str]:
    """The plugins that changes since a commit can have touched: all if core, cli or the workspace changed."""
    # Without renames a moved file counts where it was, too.
    names = ["git", "diff", "--name-only", "--no-renames", base, "--"]
    paths = subprocess.run(names, cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    everything = [part.name for part in parts(["plugins"], root)]
    touched = {Path(path).parts[1] for path in paths if path.startswith("plugins/")}
    if any(path and not path.startswith(("plugins/", "docs/")) for path in paths):
        return everything
    needs = _needs(root)
    while reached := {slug for slug in everything if needs[slug] & touched} - touched:
        touched |= reached
    return [slug for slug in everything if slug in touched]


def _needs(root: Path) -> dict[str, set[str]]:
    """The plugins that each plugin depends on."""
    tables = {part.name: project(part) for part in parts(["plugins"], root)}
    slugs = {_dist(str(table["name"])): slug for slug, table in tables.items()}
    return {
        slug: {
            slugs[dist] for text in _strings(table.get("dependencies", [])) if (dist := _dist(text)) in slugs
        }
        for slug, table in tables.items()
    }


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _dist(requirement: str) -> str:
    """The distribution that a requirement names; this runs before the packaging library is there."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", found.group() if found else requirement).lower()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the tool's words."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = parser.add_subparsers(dest="word", required=True)
    for word in ("install", "requirements"):
        words.add_parser(word).add_argument("parts", nargs="+")
    words.add_parser("prepare")
    words.add_parser("catalogue")
    words.add_parser("check")
    words.add_parser("changed").add_argument("base")
    given = parser.parse_args(arguments)
    if given.word == "prepare":
        prepare()
    elif given.word == "install":
        install(given.parts)
    elif given.word == "requirements":
        print("\n".join(requirements(given.parts)))
    elif given.word == "changed":
        print("\n".join(changed(given.base)))
    else:
        import catalogue

        return catalogue.write() if given.word == "catalogue" else catalogue.check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
