"""The program: exit codes, warnings in one line, and errors in two with a traceback only for who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separata.testing import Site

Separata = Callable[..., Any]

CLI = """
import sys
import typer
from separata import verbs
from separata.errors import SeparataError
from separata.claims import Evidence, at_least

app = verbs.app("Toys.")

class Deflated(SeparataError):
    '''A plugin's own error.'''

@app.command()
def bounce(height: int = 1):
    '''Bounce.

    Example: separata toy bounce --height 2
    '''
    typer.echo(f"bounced {height}")

@app.command()
def deflate():
    raise Deflated("the ball is flat", "pump it up")

@app.command()
def quote():
    raise Deflated("it said:\\n  oh\\n  no", "read\\nit")

@app.command()
def crash():
    raise ZeroDivisionError("by\\nzero")

@app.command()
def interrupt():
    raise KeyboardInterrupt

@app.command()
def leave(how: str):
    sys.exit({"well": None, "zero": 0, "five": 5, "words": "I am off"}[how])

@app.command()
def squeak():
    import warnings
    for _ in range(2):
        warnings.warn("the ball\\nis soft", UserWarning)

@app.command()
def echo(words: list[str]):
    typer.echo(" ".join(words))
"""
HOOKS = "@hookimpl\ndef separata_commands():\n    yield Command('separata_toy.cli:app', summary='Play.')\n"


@pytest.fixture
def toy(site: Site, separata: Separata) -> Separata:
    """Run a verb of a plugin that is installed."""
    site.add("toy", HOOKS, files={"cli.py": CLI})
    return lambda *arguments: separata("toy", *arguments)


def test_what_is_done_exits_with_0(toy: Separata) -> None:
    done = toy("bounce", "--height", "2")
    assert (done.code, done.out, done.err) == (0, "bounced 2\n", "")


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["nonsense"], ["find", "--kind", "colonel"], ["prove"], ["info", "nobody"]]
)
def test_wrong_use_of_the_root_exits_with_2(arguments: list[str], separata: Separata) -> None:
    assert separata(*arguments).code == 2


@pytest.mark.parametrize("arguments", [["bounce", "--height", "x"], ["bunce"], ["bounce", "--nonsense"]])
def test_wrong_use_of_a_verb_exits_with_2(arguments: list[str], toy: Separata) -> None:
    assert toy(*arguments).code == 2


def test_an_error_that_a_plugin_raises_on_purpose_is_two_lines_and_exits_with_2(toy: Separata) -> None:
    done = toy("deflate")
    assert (done.code, done.out, done.err) == (2, "", "separata: the ball is flat\n  pump it up\n")


def test_an_error_that_quotes_several_lines_is_still_two(toy: Separata) -> None:
    assert toy("quote").err == "separata: it said: oh no\n  read it\n"


def test_any_other_error_is_two_lines_and_exits_with_3(toy: Separata) -> None:
    done = toy("crash")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        "separata: unexpected ZeroDivisionError: by zero",
        "  run it again with --debug to see where, and report it to the plugin's author",
    ]


def test_a_broken_plugin_exits_with_3_and_says_what_to_do(site: Site, separata: Separata) -> None:
    site.add("bad", "raise OSError('no device')")
    done = separata("bad", "bounce")
    assert (done.code, done.out, len(done.err.splitlines())) == (3, "", 2)
    assert "plugin 'bad' (separata-bad 1.0) is broken: OSError: no device" in done.err
    assert "python -m pip uninstall separata-bad" in done.err


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("verb", "error"), [("deflate", "Deflated"), ("crash", "ZeroDivisionError")])
def test_debug_shows_the_traceback_wherever_it_stands(
    place: int, verb: str, error: str, toy: Separata, separata: Separata
) -> None:
    arguments = ["toy", verb]
    arguments.insert(place, "--debug")
    done = separata(*arguments)
    assert "Traceback (most recent call last)" in done.err
    assert "cli.py" in done.err
    assert error in done.err


def test_debug_leaves_the_two_lines_and_the_code_as_they_are(toy: Separata) -> None:
    done = toy("deflate", "--debug")
    assert (done.code, done.err.splitlines()[-2:]) == (2, ["separata: the ball is flat", "  pump it up"])


def test_debug_can_be_asked_for_in_the_environment(toy: Separata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPARATA_DEBUG", "1")
    assert "Traceback" in toy("crash").err


def test_what_follows_two_hyphens_belongs_to_the_verb(toy: Separata) -> None:
    assert toy("echo", "--", "a", "--debug").out == "a --debug\n"


def test_a_warning_is_one_line_told_once_without_its_place_in_the_source(toy: Separata) -> None:
    done = toy("squeak")
    assert (done.code, done.err) == (0, "note: the ball is soft\n")


def test_a_verb_that_is_interrupted_exits_with_130_and_says_nothing(toy: Separata) -> None:
    done = toy("interrupt")
    assert (done.code, done.out, done.err.strip()) == (130, "", "")


@pytest.mark.parametrize(
    ("how", "code", "err"), [("well", 0, ""), ("zero", 0, ""), ("five", 5, ""), ("words", 3, "I am off\n")]
)
def test_a_verb_that_leaves_by_itself_keeps_its_code_and_its_words(
    how: str, code: int, err: str, toy: Separata
) -> None:
    done = toy("leave", how)
    assert (done.code, done.err) == (code, err)


def test_a_cli_module_that_leaves_while_it_is_imported_is_broken(site: Site, separata: Separata) -> None:
    site.add("toy", HOOKS, files={"cli.py": "import sys; sys.exit(0)"})
    done = separata("toy", "bounce")
    assert (done.code, len(done.err.splitlines())) == (3, 2)
    assert "separata_toy.cli:app, which does not load: SystemExit" in done.err
