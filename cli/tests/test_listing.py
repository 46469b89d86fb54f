"""The words that say what there is: list, find, info, inputs, version."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import separata as core
from separata import registry
from separata.catalog import parse
from separata.testing import Site

Separata = Callable[..., Any]

HOOKS = """
@hookimpl
def separata_paper():
    return Paper("Toys for All", venue="ICML 2026", arxiv="2601.00001")

@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "separata_toy:x", summary="A ball.", tags={"round", "cuda"})
    yield Offer("model", "house", "separata_toy:x", summary="A house.")

@hookimpl
def separata_claims():
    yield Claim("bounces", says="It bounces.", paper="0.9", proof="separata_toy:x")

@hookimpl
def separata_benchmarks():
    yield Benchmark("drop", says="A drop.", peer="stone", run="separata_toy:x")

@hookimpl
def separata_inputs():
    yield Input("floor", file=__file__, licence="CC0-1.0", about="A floor.")
"""


@pytest.fixture
def toy(site: Site) -> Site:
    site.add("toy", HOOKS, version="1.2", summary="Toys to play with.")
    return site


@pytest.fixture
def _catalogued(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"dist": "separata-car", "title": "Cars", "summary": "Drive.", "fields": ["traffic"]}
    known = parse(json.dumps({"registry": {"reserved": []}, "plugins": {"car": row}}))
    monkeypatch.setattr(registry, "catalogue", lambda: known)


def test_list_shows_what_is_installed_with_its_state(toy: Site, separata: Separata) -> None:
    toy.add("game", requires=["separata>=9"])
    toy_row, game_row = sorted(separata("list", "--json").json, key=lambda row: row["slug"], reverse=True)
    assert toy_row == {"slug": "toy", "version": "1.2", "state": "installed", "summary": "Toys to play with."}
    assert game_row["state"] == "incompatible"
    assert "asks for separata>=9" in game_row["summary"]


@pytest.mark.usefixtures("_catalogued")
@pytest.mark.parametrize(("options", "slugs"), [([], ["toy"]), (["--all"], ["car", "toy"])])
def test_list_shows_what_is_not_installed_to_who_asks(
    options: list[str], slugs: list[str], toy: Site, separata: Separata
) -> None:
    assert [row["slug"] for row in separata("list", *options, "--json").json] == slugs


def test_list_imports_no_plugin(toy: Site, separata: Separata) -> None:
    separata("list")
    assert "separata_toy" not in sys.modules


def test_list_without_plugins_says_where_to_find_some(separata: Separata) -> None:
    assert separata("list").out == "No plugin is installed; see `separata list --all`.\n"


def test_list_without_plugins_is_an_empty_list_to_machines(separata: Separata) -> None:
    assert separata("list", "--json").json == []


def test_list_without_plugins_on_purpose_shows_them_as_blocked(toy: Site, separata: Separata) -> None:
    (row,) = separata("--no-plugins", "list", "--json").json
    assert (row["slug"], row["state"]) == ("toy", "blocked")


def test_find_shows_offers_with_their_tags(toy: Site, separata: Separata) -> None:
    assert separata("find", "ball", "--kind", "kernel", "--json").json == [
        {
            "name": "toy/ball",
            "kind": "kernel",
            "installed": True,
            "summary": "A ball.",
            "tags": ["cuda", "round"],
        }
    ]


@pytest.mark.usefixtures("_catalogued")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ["car", "toy"]),
        (["traffic"], ["car"]),
        (["to", "play"], ["toy"]),
        (["--tag", "round", "--tag", "cuda"], ["toy/ball"]),
        (["--tag", "square"], []),
        (["--kind", "model"], ["toy/house"]),
    ],
)
def test_find_narrows_by_words_tags_and_kind(
    arguments: list[str], names: list[str], toy: Site, separata: Separata
) -> None:
    assert [row["name"] for row in separata("find", *arguments, "--json").json] == names


def test_find_of_nothing_says_where_everything_is(separata: Separata) -> None:
    assert separata("find", "xyz").out == "Nothing fits; `separata list --all` shows everything.\n"


def test_find_of_a_kind_that_does_not_exist_names_the_kinds(separata: Separata) -> None:
    done = separata("find", "--kind", "colonel")
    assert (done.code, done.err) == (
        2,
        "separata: there is no kind 'colonel'\n  the kinds are model, trainer, estimator, kernel, scheduler\n",
    )


def test_info_tells_what_a_plugin_is_and_all_that_it_declares(toy: Site, separata: Separata) -> None:
    assert separata("info", "toy", "--json").json == {
        "slug": "toy",
        "dist": "separata-toy",
        "version": "1.2",
        "state": "loaded",
        "summary": "Toys to play with.",
        "paper": "Toys for All",
        "venue": "ICML 2026",
        "arxiv": "2601.00001",
        "offers": [
            {"name": "toy/ball", "kind": "kernel", "summary": "A ball."},
            {"name": "toy/house", "kind": "model", "summary": "A house."},
        ],
        "claims": [{"name": "bounces", "says": "It bounces.", "paper": "0.9"}],
        "benchmarks": [{"name": "drop", "says": "A drop.", "peer": "stone"}],
        "inputs": [
            {
                "name": "floor",
                "source": f"file {toy.folder}/separata_toy/_plugin.py",
                "licence": "CC0-1.0",
            }
        ],
    }


def test_info_for_people_has_the_same_words(toy: Site, separata: Separata) -> None:
    out = separata("info", "toy").out
    assert [
        word for word in ("Toys for All", "toy/ball", "It bounces.", "stone", "CC0-1.0") if word not in out
    ] == []


@pytest.mark.parametrize(
    ("fault", "state"),
    [({"hooks": "raise OSError('no device')"}, "broken"), ({"requires": ["separata>=9"]}, "incompatible")],
)
def test_info_of_a_plugin_that_can_not_be_used_says_why(
    fault: dict[str, Any], state: str, site: Site, separata: Separata
) -> None:
    site.add("bad", **fault)
    done = separata("info", "bad", "--json")
    assert (done.code, done.json["state"]) == (0, state)
    assert done.json["reason"].startswith("plugin 'bad' (separata-bad 1.0)")
    assert "python -m pip" in done.json["remedy"]


def test_info_of_a_plugin_that_is_left_out_says_so(toy: Site, separata: Separata) -> None:
    assert separata("--no-plugins", "info", "toy", "--json").json["state"] == "blocked"


@pytest.mark.usefixtures("_catalogued")
@pytest.mark.parametrize(
    ("slug", "remedy"), [("car", "python -m pip install separata-car"), ("tou", "did you mean toy?")]
)
def test_info_of_what_is_not_installed_says_what_to_do(
    slug: str, remedy: str, toy: Site, separata: Separata
) -> None:
    done = separata("info", slug)
    assert (done.code, remedy in done.err) == (2, True)


def test_inputs_are_listed_with_their_licences(toy: Site, separata: Separata) -> None:
    (row,) = separata("inputs", "--json").json
    assert (row["input"], row["licence"], row["about"]) == ("toy/floor", "CC0-1.0", "A floor.")


def test_inputs_of_nobody_are_told(site: Site, separata: Separata) -> None:
    site.add("toy")
    assert separata("inputs").out == "No installed plugin names an input.\n"


def test_an_input_is_fetched_by_name_and_nothing_but_its_path_goes_to_standard_output(
    toy: Site, separata: Separata
) -> None:
    done = separata("inputs", "floor")
    assert Path(done.out.strip()) == toy.folder / "separata_toy" / "_plugin.py"
    assert done.err == "floor: licence CC0-1.0\n"


def test_an_input_that_nobody_has_is_told(toy: Site, separata: Separata) -> None:
    done = separata("inputs", "flor")
    assert (done.code, done.err) == (2, "separata: there is no input 'flor'\n  did you mean floor?\n")


def test_version_tells_the_versions_of_what_is_installed(toy: Site, separata: Separata) -> None:
    found = separata("version", "--json").json
    assert (found["separata"], found["separata-toy"]) == (core.__version__, "1.2")
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_version_imports_no_plugin(toy: Site, separata: Separata) -> None:
    separata("version")
    assert "separata_toy" not in sys.modules
