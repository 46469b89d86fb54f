"""Third-party packages once for all environments: torch alone weighs a gigabyte.

They live in one folder under ``.tox``; an environment sees them through a line in a ``.pth`` file. None of the
workspace's own distributions is ever in there, so an environment holds exactly the parts it was given.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "tools/constraints.txt"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
FOLDER = ROOT / f".tox/.shared-{VERSION}"


def group(*names: str) -> list[str]:
    """The requirements of the workspace's dependency groups."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    return [requirement for name in names for requirement in groups[name]]


def install(requirements: Sequence[str]) -> None:
    """Bring the shared folder up to date; it costs nothing if it is."""
    wanted = "\n".join([*sorted(requirements), CONSTRAINTS.read_text("utf-8"), sys.version])
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    stamp = FOLDER / "installed"
    if stamp.is_file() and stamp.read_text("utf-8") == digest:
        return
    print(f"installing third-party packages into {FOLDER.relative_to(ROOT)} (once)", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(FOLDER)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(FOLDER), "install", "-qq", "--upgrade"]
    subprocess.run([*pip, "--constraint", str(CONSTRAINTS), *sorted(requirements)], check=True)
    stamp.write_text(digest, "utf-8")


def site_packages() -> Path:
    """Where the shared packages are."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(FOLDER)}))


def attach(environment: Path) -> None:
    """Let an environment, given by its site-packages folder, see the shared packages."""
    (environment / "shared.pth").write_text(f"{site_packages()}\n", "utf-8")
