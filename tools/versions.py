"""A change that users meet has a version or a line in the changelog: else it never reaches them.

python tools/versions.py BASE     fails for each part whose sources changed since a commit, and neither did
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from workspace import ROOT, parts


def silent_changes(base: str, root: Path = ROOT) -> list[str]:
    """The parts whose ``src`` changed since a commit, with neither a new version nor a changelog entry."""
    command = ["git", "diff", "--name-only", base, "--"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    paths = done.stdout.splitlines()
    silent = []
    for part in parts(["core", "cli", "plugins"], root):
        name = part.relative_to(root).as_posix()
        changed = any(path.startswith(f"{name}/src/") for path in paths)
        told = f"{name}/CHANGELOG.md" in paths or _version_moved(base, f"{name}/pyproject.toml", root)
        if changed and not told:
            silent.append(name)
    return silent


def _version_moved(base: str, path: str, root: Path) -> bool:
    command = ["git", "diff", base, "--", path]
    diff = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return any(line.startswith("+version =") for line in diff.splitlines())


def main(arguments: Sequence[str]) -> int:
    """Name the silent changes; 1 if there are any."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    silent = silent_changes(arguments[0])
    for name in silent:
        print(
            f"{name}: its sources changed, and neither its version nor CHANGELOG.md did; "
            f"add a line to {name}/CHANGELOG.md, or raise the version in {name}/pyproject.toml",
            file=sys.stderr,
        )
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
