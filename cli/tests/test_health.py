"""The word that looks for what is wrong: doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separata import registry
from separata.catalog import Catalogue
from separata.errors import CatalogueUnreadable
from separata.testing import Site

Separata = Callable[..., Any]

HOOKS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "separata_toy.things:Ball", summary="A ball.",
                config="separata_toy.things:Config", reference="separata_toy.things:nowhere")

@hookimpl
def separata_commands():
    yield Command("separata_toy.cli:app", summary="Play.")

@hookimpl
def separata_claims():
    yield Claim("bounces", says="It bounces.", paper="0.9", proof="separata_toy.things:Ball")

@hookimpl
def separata_benchmarks():
    yield Benchmark("drop", says="A drop.", peer="stone", run="separata_toy.things:drop")
"""


def wells(done: Any) -> dict[str, bool]:
    return {row["what"]: row["well"] for row in done.json}


def test_without_plugins_the_core_is_well(separata: Separata) -> None:
    done = separata("doctor")
    assert (done.code, done.out) == (0, "No plugin is installed; the core is well.\n")


def test_plugins_that_load_are_well(site: Site, separata: Separata) -> None:
    site.add("toy")
    site.add("game")
    done = separata("doctor", "--json")
    assert (done.code, wells(done)) == (0, {"game": True, "toy": True})


@pytest.mark.parametrize(
    ("fault", "problem", "remedy"),
    [
        (
            {"hooks": "raise OSError('no [/dev] here')"},
            "OSError: no [/dev] here",
            "pip uninstall separata-bad",
        ),
        ({"hooks": "import sys; sys.exit(1)"}, "SystemExit: 1", "pip uninstall separata-bad"),
        ({"requires": ["separata>=9"]}, "asks for separata>=9", "pip install --upgrade separata-bad"),
    ],
)
def test_a_fault_is_told_with_its_remedy_and_exits_with_3(
    fault: dict[str, Any], problem: str, remedy: str, site: Site, separata: Separata
) -> None:
    site.add("bad", **fault)
    done = separata("doctor", "--json")
    (row,) = done.json
    assert (done.code, row["well"]) == (3, False)
    assert problem in row["problem"]
    assert remedy in row["remedy"]


def test_a_fault_is_shown_to_people_as_it_is(site: Site, separata: Separata) -> None:
    site.add("bad", "raise OSError('no [/dev] here')")
    done = separata("doctor")
    assert (done.code, "no [/dev] here" in " ".join(done.out.split())) == (3, True)


def test_one_fault_does_not_hide_the_health_of_others(site: Site, separata: Separata) -> None:
    site.add("bad", "raise OSError")
    site.add("toy")
    assert wells(separata("doctor", "--json")) == {"bad": False, "toy": True}


def test_what_is_left_out_on_purpose_is_no_fault(site: Site, separata: Separata) -> None:
    site.add("bad", "raise OSError")
    assert separata("--no-plugins", "doctor", "--json").json == []


def test_a_damaged_catalogue_is_a_fault(separata: Separata, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> Catalogue:
        raise CatalogueUnreadable("the catalogue is damaged", "install again")

    monkeypatch.setattr(registry, "catalogue", unreadable)
    done = separata("doctor", "--json")
    assert (done.code, done.json[0]["problem"]) == (3, "the catalogue is damaged")


def test_one_plugin_is_examined_with_everything_that_it_names(site: Site, separata: Separata) -> None:
    things = "class Ball: pass\nclass Config: pass\n"
    site.add("toy", HOOKS, files={"things.py": things, "cli.py": "import missing_module_of_toy"})
    done = separata("doctor", "toy", "--json")
    assert done.code == 3
    assert wells(done) == {
        "toy": True,
        "separata_toy.things:Ball": True,
        "separata_toy.things:Config": True,
        "separata_toy.things:nowhere": False,
        "separata_toy.cli:app": False,
        "separata_toy.things:drop": False,
    }


def test_one_plugin_that_does_not_load_is_examined_as_far_as_it_goes(site: Site, separata: Separata) -> None:
    site.add("bad", "raise OSError")
    done = separata("doctor", "bad", "--json")
    assert (done.code, wells(done)) == (3, {"bad": False})


def test_a_plugin_that_is_not_there_is_wrong_use(separata: Separata) -> None:
    assert separata("doctor", "nobody").code == 2
