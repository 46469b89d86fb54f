"""Check the types of every part with mypy, each as the package that its users import."""

from __future__ import annotations

import subprocess
import sys

from workspace import ROOT, parts


def main() -> int:
    """Run mypy over all parts at once; 0 if it is content."""
    folders = [part / "src" for part in parts(["core", "cli", "plugins"])]
    packages = [package.name for folder in folders for package in folder.iterdir() if package.is_dir()]
    named = [argument for package in sorted(packages) for argument in ("-p", package)]
    return subprocess.run([sys.executable, "-m", "mypy", *named], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
