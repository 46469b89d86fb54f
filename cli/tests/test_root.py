"""The root command: its own words, one word for each plugin, and answers to words that it does not know."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from separata import registry
from separata.catalog import parse
from separata.names import RESERVED
from separata.testing import Site
from separata_cli import root
from separata_cli.root import command

Separata = Callable[..., Any]

WORDS = list(command().commands)
CLI = """
import typer
from separata import verbs
from .config import Config

app = verbs.app("Play with toys.")

@app.command()
@verbs.configured(Config)
def bounce(ball: str = "red", *, config, json: verbs.Json = False):
    '''Let a ball bounce.

    Example: separata toy bounce --height 2
    '''
    verbs.show({"ball": ball, "height": config.value.height}, json=json)

@app.command()
def build():
    '''Build a tower.'''
"""
CONFIG = """
import attrs

@attrs.frozen
class Config:
    height: int = attrs.field(default=1, metadata={"help": "How high."})
"""
HOOKS = "@hookimpl\ndef separata_commands():\n    yield Command('separata_toy.cli:app', summary='Play.')\n"


@pytest.fixture
def toy(site: Site) -> Site:
    site.add("toy", HOOKS, summary="Toys to play with.", files={"cli.py": CLI, "config.py": CONFIG})
    return site


def loaded() -> list[str]:
    return [name for name in sys.modules if name.startswith("separata_") and "separata_cli" not in name]


def test_help_lists_the_words_and_the_installed_plugins_with_their_summaries(
    toy: Site, separata: Separata
) -> None:
    done = separata("--help")
    assert done.code == 0
    assert [word for word in WORDS if f"\n  {word} " not in done.out] == []
    assert "Toys to play with." in done.out


def test_help_imports_no_plugin(toy: Site, separata: Separata) -> None:
    separata("--help")
    assert loaded() == []


def test_every_own_word_is_reserved_so_that_no_plugin_can_take_it() -> None:
    assert set(WORDS) <= RESERVED


@pytest.mark.parametrize("word", WORDS)
def test_the_help_of_each_word_shows_an_example_of_its_use(word: str, separata: Separata) -> None:
    done = separata(word, "--help")
    assert done.code == 0
    assert f"Example: separata {word}" in done.out


XKV = """
@hookimpl
def separata_claims():
    yield Claim("layers-align", says="They do.", paper="1", proof="separata_xkv.cli:proof")

@hookimpl
def separata_benchmarks():
    yield Benchmark("factorise", says="A product.", peer="numpy", run="separata_xkv.cli:run")

@hookimpl
def separata_inputs():
    yield Input("smollm2", file=__file__, licence="Apache-2.0")

@hookimpl
def separata_commands():
    yield Command("separata_xkv.cli:app", summary="Compress.")
"""
XKV_CLI = """
from separata import verbs
from separata.claims import Evidence, Race, at_least

app = verbs.app("Compress.")

def proof(trial):
    return Evidence(1, at_least(1), "ratio")

def run(trial):
    yield Race(10, lambda: sum(range(999)), lambda: sum(range(999)))
"""


@pytest.mark.parametrize("word", WORDS)
def test_the_example_of_each_word_runs_as_written(
    word: str, site: Site, separata: Separata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("xkv", XKV, files={"cli.py": XKV_CLI})
    monkeypatch.chdir(tmp_path)
    shown = separata(word, "--help").out
    (line,) = [line for line in shown.splitlines() if "Example: separata " in line]
    done = separata(*shlex.split(line.partition("separata ")[2]))
    # This xkv is a stand-in without offers, so the rules for plugins may find something to say.
    assert done.code == 0 or (word == "check" and done.code == 1), done.err
    assert done.out


def test_the_word_of_a_plugin_shows_its_verbs(toy: Site, separata: Separata) -> None:
    done = separata("toy", "--help")
    assert (done.code, "Usage: separata toy" in done.out) == (0, True)
    assert "Let a ball bounce." in done.out
    assert "Build a tower." in done.out


def test_the_word_of_a_plugin_runs_its_verbs(toy: Site, separata: Separata) -> None:
    assert separata("toy", "bounce", "--ball", "blue", "--json").json == {"ball": "blue", "height": 1}


def test_a_verbs_settings_come_from_the_environment_of_its_plugin(
    toy: Site, separata: Separata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPARATA_TOY_HEIGHT", "7")
    assert separata("toy", "bounce", "--json").json["height"] == 7


def test_a_setting_that_is_refused_is_two_lines(toy: Site, separata: Separata, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("hieght = 2")
    done = separata("toy", "bounce", "--config", str(tmp_path / "settings.toml"))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"separata: there is no setting hieght (from {tmp_path}/settings.toml)\n"
        "  did you mean height? the settings are height\n"
    )


def test_a_word_loads_its_own_plugin_only(toy: Site, separata: Separata) -> None:
    toy.add("game", "raise RuntimeError")
    separata("toy", "bounce")
    assert {name.partition(".")[0] for name in loaded()} == {"separata_toy"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [("lst", "did you mean list?"), ("tou", "did you mean toy?"), ("qqqqqq", "see `separata --help`")],
)
def test_an_unknown_word_is_answered_with_the_closest_ones(
    word: str, hint: str, toy: Site, separata: Separata
) -> None:
    done = separata(word, "bounce")
    assert (done.code, done.err) == (2, f"separata: there is no word {word!r}\n  {hint}\n")


def test_the_word_of_a_plugin_that_is_not_installed_is_answered_with_what_to_install(
    separata: Separata, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"dist": "separata-toy", "title": "Toys", "summary": "Play."}
    known = parse(json.dumps({"registry": {"reserved": []}, "plugins": {"toy": row}}))
    monkeypatch.setattr(registry, "catalogue", lambda: known)
    done = separata("toy", "bounce")
    assert (done.code, done.err) == (
        2,
        "separata: plugin 'toy' is not installed\n  it ships in separata-toy: python -m pip install separata-toy\n",
    )


def test_without_plugins_a_plugins_word_is_blocked_and_nothing_is_imported(
    toy: Site, separata: Separata
) -> None:
    done = separata("--no-plugins", "toy", "bounce")
    assert (done.code, len(done.err.splitlines())) == (3, 2)
    assert "left out by the allow-list" in done.err
    assert loaded() == []


def test_the_allow_list_leaves_a_plugin_out_of_help(
    toy: Site, separata: Separata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPARATA_PLUGINS", "game")
    assert "Toys to play with." not in separata("--help").out


def test_two_distributions_with_one_word_are_both_named(toy: Site, separata: Separata) -> None:
    toy.add_metadata("playthings", version="2", entry_points={"toy": "separata_toy._plugin"})
    done = separata("toy", "bounce")
    assert (done.code, "separata-toy 1.0" in done.err, "playthings 2" in done.err) == (3, True, True)


def test_a_plugin_without_verbs_says_where_to_look(site: Site, separata: Separata) -> None:
    site.add("toy")
    done = separata("toy")
    assert (done.code, done.err) == (
        2,
        "separata: plugin 'toy' has no verbs\n  see `separata info toy` for what it offers\n",
    )


@pytest.mark.parametrize("source", ["app = 3", "def app(): pass"])
def test_a_command_that_is_no_typer_app_is_broken(source: str, site: Site, separata: Separata) -> None:
    site.add("toy", HOOKS, files={"cli.py": source})
    done = separata("toy", "bounce")
    assert (done.code, "tell its author: a command is a typer.Typer" in done.err) == (3, True)


@pytest.mark.parametrize(
    "words", [["list"], ["doctor"], ["info", "toy"], ["find", "toy"], ["inputs"], ["version"]]
)
def test_the_own_words_work_with_every_plugin_broken(
    words: list[str], site: Site, separata: Separata
) -> None:
    site.add("toy", "import sys; sys.exit(0)")
    site.add("game", "raise OSError('[/no] device')")
    site.add("ball", requires=["separata>=9"])
    site.add_metadata("playthings", entry_points={"toy": "x", "list": "y", "Bad Word": "z"})
    done = separata(*words)
    assert done.code == (3 if words == ["doctor"] else 0)
    assert done.err == ""
    assert done.out


@pytest.mark.parametrize(
    "words", [["list"], ["doctor"], ["find"], ["inputs"], ["version"], ["toy", "bounce"]]
)
def test_a_damaged_catalogue_costs_only_what_is_not_installed(
    words: list[str], toy: Site, separata: Separata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from separata import catalog

    (tmp_path / "_catalog.json").write_text('{"registry": ')
    monkeypatch.setattr(catalog, "files", lambda _: tmp_path)
    monkeypatch.setattr(registry, "catalogue", catalog.catalogue.__wrapped__)
    done = separata(*words)
    assert done.code == (3 if words == ["doctor"] else 0)
    assert ("the catalogue" in done.out) is (words == ["doctor"])


@pytest.fixture
def complete(separata: Separata, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What the shell is told at TAB after a line."""

    def words(line: str) -> list[str]:
        monkeypatch.setenv("_SEPARATA_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        done = separata()
        assert done.err == ""
        return done.out.split()

    return words


def test_completion_of_the_first_word_offers_words_and_plugins(toy: Site, complete: Any) -> None:
    assert complete("separata ") == [*WORDS, "toy"]


def test_completion_goes_by_the_beginning(toy: Site, complete: Any) -> None:
    assert complete("separata to") == ["toy"]


def test_completion_of_the_first_word_imports_no_plugin(toy: Site, complete: Any) -> None:
    complete("separata t")
    assert loaded() == []


def test_completion_of_the_second_word_offers_the_plugins_verbs(toy: Site, complete: Any) -> None:
    assert complete("separata toy ") == ["bounce", "build"]


def test_completion_of_an_option_offers_the_settings(toy: Site, complete: Any) -> None:
    assert complete("separata toy bounce --he") == ["--height", "--help"]


@pytest.mark.parametrize("line", ["separata bad ", "separata conflict b"])
def test_completion_where_there_is_nothing_to_complete_is_silent(
    line: str, site: Site, complete: Any
) -> None:
    site.add("bad", "raise OSError")
    site.add_metadata("one", entry_points={"conflict": "x"})
    site.add_metadata("two", entry_points={"conflict": "y"})
    assert complete(line) == []


def test_the_root_uses_plain_help() -> None:
    assert root.app.rich_markup_mode is None
