"""What a name may look like, and the words that no plugin may take."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")

# The words of the command line, and those of the project itself.
RESERVED = frozenset(
    {"list", "find", "info", "doctor", "prove", "bench", "check", "new", "launch", "inputs", "version"}
    | {"report", "help", "cli", "core", "testing", "all", "plugins", "local"}
)
