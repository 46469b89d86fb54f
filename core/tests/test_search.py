"""Search: over what is installed and what is catalogued."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from separata.catalog import parse
from separata.errors import PluginError
from separata.registry import Registry
from separata.search import find
from separata.testing import Site

KNOWN = parse(
    json.dumps(
        {
            "registry": {"reserved": []},
            "plugins": {
                "xcache": {
                    "dist": "separata-xcache",
                    "title": "Cross-Layer Caches",
                    "summary": "Compress the KV cache.",
                    "fields": ["language models"],
                    "offers": [
                        {"kind": "kernel", "name": "svd", "summary": "Low rank.", "tags": ["cuda", "fast"]},
                        {"kind": "model", "name": "tiny", "summary": "A small one.", "tags": ["fast"]},
                    ],
                }
            },
        }
    )
)
OFFERS = "@hookimpl\ndef separata_offers():\n    yield Offer('kernel', 'ball', 'a:b', summary='Round.', tags={'fast'})"


@pytest.fixture
def search(site: Site, registry_of: Callable[..., Registry]) -> Callable[..., list[str]]:
    """Names found with one catalogued plugin, and one installed that the catalogue does not know."""
    site.add("toy", OFFERS, summary="A plugin to play with.")

    def names(text: str = "", **options: Any) -> list[str]:
        return [row.name for row in find(text, registry=registry_of(KNOWN), **options)]

    return names


def test_no_words_find_everything(search: Callable[..., list[str]]) -> None:
    assert search() == ["xcache", "xcache/svd", "xcache/tiny", "toy"]


@pytest.mark.parametrize(
    "text", ["xcache", "XCACHE", "kv cache", "kv-cache", "cross layer", "language", "cross-layer caches"]
)
def test_words_of_the_plugin_find_it_with_its_offers(text: str, search: Callable[..., list[str]]) -> None:
    assert search(text) == ["xcache", "xcache/svd", "xcache/tiny"]


@pytest.mark.parametrize("text", ["svd", "low rank", "cuda", "kv svd", "fast low"])
def test_words_of_an_offer_find_that_offer(text: str, search: Callable[..., list[str]]) -> None:
    assert search(text) == ["xcache/svd"]


def test_all_words_must_occur(search: Callable[..., list[str]]) -> None:
    assert search("kv nonsense") == []


def test_words_of_an_installed_plugin_find_it_too(search: Callable[..., list[str]]) -> None:
    assert search("play with") == ["toy"]


def test_words_alone_import_no_plugin(search: Callable[..., list[str]]) -> None:
    search("play")
    assert "separata_toy" not in sys.modules


def test_a_kind_leaves_only_offers_of_it_also_those_the_catalogue_does_not_know(
    search: Callable[..., list[str]],
) -> None:
    assert search(kind="kernel") == ["xcache/svd", "toy/ball"]


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (["fast"], ["xcache/svd", "xcache/tiny", "toy/ball"]),
        (["fast", "cuda"], ["xcache/svd"]),
        (["slow"], []),
    ],
)
def test_all_tags_must_be_carried(
    tags: list[str], found: list[str], search: Callable[..., list[str]]
) -> None:
    assert search(tags=tags) == found


def test_rows_say_whether_they_are_installed(site: Site, registry_of: Callable[..., Registry]) -> None:
    site.add("toy")
    rows = find(registry=registry_of(KNOWN))
    assert {row.name: row.installed for row in rows if row.kind is None} == {"xcache": False, "toy": True}


def test_an_installed_plugin_that_the_catalogue_knows_is_found_once(
    site: Site, registry_of: Callable[..., Registry]
) -> None:
    site.add("xcache")
    rows = find("xcache", registry=registry_of(KNOWN))
    assert [(row.name, row.installed) for row in rows if row.kind is None] == [("xcache", True)]


def test_a_broken_plugin_keeps_its_own_row_and_costs_no_other(
    site: Site, registry_of: Callable[..., Registry]
) -> None:
    site.add("bad", "raise OSError")
    site.add("toy", OFFERS)
    assert [row.name for row in find(kind="kernel", registry=registry_of())] == ["toy/ball"]
    assert [row.name for row in find(registry=registry_of())] == ["bad", "toy"]


def test_strictly_a_broken_plugin_stops_a_search_that_must_load_it(
    site: Site, registry_of: Callable[..., Registry]
) -> None:
    site.add("bad", "raise OSError")
    with pytest.raises(PluginError, match="bad"):
        find(kind="kernel", registry=registry_of(strict=True))
