"""Sites: plugins that look installed, to this process and to others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from separata.registry import Registry
from separata.testing import Site

OFFERS = "@hookimpl\ndef separata_offers():\n    yield Offer('kernel', 'ball', 'a:b', summary='Round.')"


@pytest.fixture
def made(tmp_path: Path) -> Site:
    return Site(tmp_path / "new" / "site")


def test_an_added_plugin_claims_its_slug_with_its_metadata(made: Site) -> None:
    made.add("kit-toys", version="2.0", summary="Play.", requires=["separata>=0.1"])
    (found,) = made.installed()["kit-toys"]
    assert (found.dist, found.version, found.summary) == ("separata-kit-toys", "2.0", "Play.")
    assert found.module == "separata_kit_toys._plugin"


def test_an_added_plugin_can_be_loaded(site: Site) -> None:
    site.add("toy", OFFERS)
    assert [offer.name for offer in Registry(site.installed()).plugin("toy").offers] == ["ball"]


def test_an_added_plugin_may_have_more_modules(site: Site) -> None:
    site.add("toy", files={"deep/method.py": "RANK = 3", "deep/__init__.py": ""})
    from separata_toy.deep.method import RANK  # type: ignore[import-not-found]

    assert RANK == 3


def test_metadata_alone_claims_nothing(made: Site) -> None:
    made.add_metadata("numbers", version="3")
    assert made.installed() == {}


def test_two_distributions_may_claim_one_slug(made: Site) -> None:
    made.add("toy")
    made.add_metadata("playthings", entry_points={"toy": "playthings"})
    assert {found.dist for found in made.installed()["toy"]} == {"separata-toy", "playthings"}


def test_another_process_finds_the_plugins_through_its_environment(made: Site) -> None:
    made.add("toy-from-a-site")
    code = "from separata.discovery import scan; print('toy-from-a-site' in scan())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=made.environment(), capture_output=True, text=True
    )
    assert done.stdout == "True\n"


def test_the_environment_keeps_what_was_there_and_adds_what_is_given(
    made: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/before")
    environment = made.environment(SEPARATA_STRICT="1")
    assert environment["PYTHONPATH"].endswith("/before")
    assert (environment["SEPARATA_STRICT"], environment["PATH"]) == ("1", environment["PATH"])
