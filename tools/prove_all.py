"""Put the claims of all plugins that are not experimental, or of the named ones, to the proof."""

from __future__ import annotations

import argparse
import subprocess
import sys

from workspace import settled

from separata import registry


def main() -> int:
    """Prove plugin after plugin; 1 if a claim fails, after all of them were tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slugs", nargs="*")
    parser.add_argument("--scale", default="small", choices=("small", "full"))
    given = parser.parse_args()
    known = registry.default()
    slugs = given.slugs or [slug for slug in settled() if known.plugin(slug).claims]
    command = ["separata", "prove", "--scale", given.scale]
    return max((subprocess.run([*command, slug], check=False).returncode for slug in slugs), default=0)


if __name__ == "__main__":
    sys.exit(main())
