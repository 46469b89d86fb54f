"""The program: runs the root command; an error is two lines and an exit code, a warning a line."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

from separata.errors import SeparataError

BROKEN = 3


def main() -> None:
    """Run ``separata`` with the arguments of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Returns:
        0 done, 1 a claim or check does not hold, 2 wrong use, 3 a plugin is broken, 130 interrupted.
    """
    from .root import command

    arguments = list(arguments)
    debug = _take_flag(arguments, "--debug") or os.environ.get("SEPARATA_DEBUG") == "1"
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.showwarning = _noter()
            command().main(arguments, prog_name="separata")
    except SystemExit as done:
        if done.code is None or isinstance(done.code, int):
            return done.code or 0
        print(done.code, file=sys.stderr)
        return BROKEN
    except SeparataError as error:
        if debug:
            traceback.print_exc()
        _print_error(error.problem, error.remedy)
        return error.exit_code
    except Exception as error:
        if debug:
            traceback.print_exc()
        _print_error(
            f"unexpected {type(error).__name__}: {error}",
            "run it again with --debug to see where, and report it to the plugin's author",
        )
        return BROKEN
    return 0


def _take_flag(arguments: list[str], flag: str) -> bool:
    """Remove a root flag wherever it stands, since people add it at the end; what follows ``--`` is left alone."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = flag in arguments[:end]
    arguments[:end] = [argument for argument in arguments[:end] if argument != flag]
    return found


def _noter() -> Callable[..., None]:
    """Tells each warning once, without the place in the source, which is nothing to its reader."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        text = " ".join(str(message).split())
        if text not in told:
            told.add(text)
            print(f"note: {text}", file=sys.stderr)

    return tell


def _print_error(problem: str, remedy: str) -> None:
    # An error may quote another one of several lines; it is still told in two.
    print(f"separata: {' '.join(problem.split())}", file=sys.stderr)
    print(f"  {' '.join(remedy.split())}", file=sys.stderr)
