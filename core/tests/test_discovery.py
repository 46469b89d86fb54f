"""Discovery: what is installed, from metadata alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from separata import __version__, discovery
from separata.discovery import allow_list, words
from separata.testing import Site


@pytest.fixture
def _rescan() -> Iterator[None]:
    discovery.scan.cache_clear()
    yield
    discovery.scan.cache_clear()


def test_metadata_is_read_without_importing_the_plugin(site: Site) -> None:
    site.add("toy", "raise RuntimeError", version="2.1", summary="Play.")
    (found,) = site.installed()["toy"]
    assert (found.slug, found.dist, found.version, found.summary) == ("toy", "separata-toy", "2.1", "Play.")
    assert "separata_toy" not in sys.modules


@pytest.mark.usefixtures("_rescan")
def test_what_is_on_the_path_is_found(site: Site) -> None:
    site.add("toy")
    assert [found.dist for found in discovery.scan()["toy"]] == ["separata-toy"]


@pytest.mark.usefixtures("_rescan")
def test_the_installed_distributions_are_walked_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[str] = []

    def entry_points(*, group: str) -> list[object]:
        walks.append(group)
        return []

    monkeypatch.setattr(discovery, "entry_points", entry_points)
    discovery.scan()
    words()
    discovery.scan()
    assert walks == ["separata.plugins"]


@pytest.mark.parametrize("damage", [b"", b"no headers at all", b"Name: t\xff\xfey\n", None])
def test_a_plugin_with_damaged_metadata_is_listed_under_its_slug(site: Site, damage: bytes | None) -> None:
    site.add("toy")
    metadata = site.folder / "separata_toy-1.0.dist-info" / "METADATA"
    metadata.unlink() if damage is None else metadata.write_bytes(damage)
    (found,) = site.installed()["toy"]
    assert (found.dist, found.version, found.summary) == ("toy", "", "")


MET = ["separata", f"separata>={__version__}", "separata[torch]", "SEPARATA>0", "separata>=9; extra == 'new'"]


@pytest.mark.parametrize("requirement", [*MET, "separata-kit-llm>=9", "torch>=99"])
def test_a_requirement_that_this_core_meets_is_no_obstacle(site: Site, requirement: str) -> None:
    site.add("toy", requires=[requirement])
    assert site.installed()["toy"][0].unmet_requirement() == ""


def test_a_core_on_its_way_to_a_version_meets_what_asks_for_an_earlier_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separata.__version__", "0.2.0rc1")
    site.add("toy", requires=["separata>=0.1,<1"])
    assert site.installed()["toy"][0].unmet_requirement() == ""


@pytest.mark.parametrize("requirement", ["separata>=9", "separata<0.1", "Separata>=9", "separata[torch]==7"])
def test_a_requirement_of_another_core_is_told_with_both_versions(site: Site, requirement: str) -> None:
    site.add("toy", requires=[requirement])
    unmet = site.installed()["toy"][0].unmet_requirement()
    assert unmet.startswith("asks for separata")
    assert unmet.endswith(f"this is separata {__version__}")


def test_a_requirement_that_is_no_requirement_is_told(site: Site) -> None:
    site.add("toy", requires=["separata >>> 1"])
    assert "separata >>> 1" in site.installed()["toy"][0].unmet_requirement()


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(None, None), ("", frozenset()), (" ,", frozenset()), ("a", {"a"}), (" a, b-c ,", {"a", "b-c"})],
)
def test_the_allow_list_comes_from_the_environment(
    value: str | None, allowed: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("SEPARATA_PLUGINS", value)
    assert allow_list() == allowed


@pytest.mark.parametrize(
    ("slug", "is_word"), [("toy", True), ("list", False), ("core", False), ("Toy", False), ("to_y", False)]
)
def test_only_well_formed_unreserved_slugs_are_words(
    slug: str, is_word: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_metadata("some-dist", entry_points={slug: "some.module"})
    monkeypatch.setattr(discovery, "scan", site.installed)
    assert (slug in words()) is is_word


def test_a_slug_that_the_allow_list_leaves_out_is_no_word(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("toy", "game", "ball"):
        site.add(slug)
    monkeypatch.setattr(discovery, "scan", site.installed)
    monkeypatch.setenv("SEPARATA_PLUGINS", "toy,ball")
    assert list(words()) == ["ball", "toy"]
