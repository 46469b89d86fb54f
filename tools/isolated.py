"""Try plugins from their wheels, in environments that hold what they declare and nothing else.

    python tools/isolated.py [SLUG ...]           all plugins that are not experimental if none is named
    python tools/isolated.py --changed BASE       the plugins that changes since a commit can have touched

They declare their dependencies and, in the extra ``test``, what only their tests need. An environment costs a second
and a megabyte: third-party packages are linked into it, not installed again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.metadata import Distribution, distribution
from pathlib import Path

from workspace import ROOT, changed, parts, project, settled

from separata.testing.probe import closure

WORKERS = 2
TEST_TOOLS = ("pytest", "hypothesis", "hatchling")


def build_wheel(part: Path, folder: Path) -> Path:
    """The wheel of a part, through its backend's own hook (PEP 517)."""
    backend = import_module("hatchling.build")
    before = Path.cwd()
    os.chdir(part)
    try:
        return folder / str(backend.build_wheel(str(folder)))
    finally:
        os.chdir(before)


def overlay(folder: Path, wheels: Iterable[Path], roots: Iterable[str]) -> Path:
    """Make an environment of some wheels and the closure of what some distributions require.

    Args:
        folder: Where to make it.
        wheels: Wheels to install, without their dependencies.
        roots: Installed distributions, with extras or without, whose requirements are linked in.

    Returns:
        The environment's Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin/python"
    site = next((folder / "lib").glob("python*/site-packages"))
    own = {str(project(part)["name"]) for part in parts(["core", "cli", "plugins"])}
    for name in sorted(closure(roots)):
        if not name.startswith("separata") or name not in own:
            link(distribution(name), site)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, *map(str, wheels)], check=True)
    return python


def link(dist: Distribution, site: Path) -> None:
    """Link a distribution's packages and metadata into an environment."""
    tops = {Path(str(file)).parts[0] for file in dist.files or () if ".." not in Path(str(file)).parts}
    for top in tops - {"__pycache__"}:
        target, source = site / top, Path(str(dist.locate_file(top)))
        if source.exists() and not target.exists():
            target.symlink_to(source)


def try_plugin(slug: str) -> tuple[int, str]:
    """Check a plugin and run its tests in an environment of its own; the exit code of what failed, and all output."""
    others = [part for part in parts(["plugins"]) if part.name != slug]
    printed = f"== {slug}\n"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        needed = closure([f"separata-{slug}"])
        chosen = [part for part in others if str(project(part)["name"]) in needed]
        wheels = [build_wheel(part, folder) for part in [*parts(["core", "cli", f"plugins/{slug}"]), *chosen]]
        python = overlay(folder / "env", wheels, [f"separata-{slug}[test]", "separata-cli", *TEST_TOOLS])
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment["OMP_NUM_THREADS"] = "1"
        for words in (["-m", "separata_cli", "check", slug], ["-m", "pytest", "-q", f"plugins/{slug}/tests"]):
            done = subprocess.run(
                [str(python), *words],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed += done.stdout
            if done.returncode:
                return done.returncode, printed
    return 0, printed


def main(arguments: Sequence[str] | None = None) -> int:
    """Try each plugin; the first exit code that is not 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("slugs", nargs="*")
    parser.add_argument("--changed", metavar="BASE")
    given = parser.parse_args(arguments)
    if given.changed:
        given.slugs += changed(given.changed)
    elif not given.slugs:
        given.slugs = settled()
    worst = 0
    # Processes, because a backend builds in the current folder.
    with ProcessPoolExecutor(WORKERS) as pool:
        for code, printed in pool.map(try_plugin, given.slugs):
            print(printed, flush=True)
            worst = worst or code
    return worst


if __name__ == "__main__":
    sys.exit(main())
