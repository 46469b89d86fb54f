"""The catalogue: what the core knows of plugins that are not installed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from separata.catalog import CatalogueOffer, catalogue, parse
from separata.errors import CatalogueUnreadable

ROW: dict[str, Any] = {
    "dist": "separata-toy",
    "title": "Toys",
    "summary": "Play.",
    "fields": ["games"],
    "claims": ["bounces"],
    "offers": [{"kind": "kernel", "name": "ball", "summary": "A ball.", "tags": ["round"]}],
}
WHOLE: dict[str, Any] = {"registry": {"reserved": ["toy", "game"]}, "plugins": {"toy": ROW}}


def test_a_row_becomes_an_entry_with_its_offers() -> None:
    entry = parse(json.dumps(WHOLE)).plugins["toy"]
    assert (entry.slug, entry.dist, entry.fields, entry.claims) == (
        "toy",
        "separata-toy",
        ("games",),
        ("bounces",),
    )
    assert entry.offers == (CatalogueOffer("kernel", "ball", "A ball.", frozenset({"round"})),)


def test_what_a_row_leaves_out_is_empty() -> None:
    row = {name: ROW[name] for name in ("dist", "title", "summary")}
    entry = parse(json.dumps({**WHOLE, "plugins": {"toy": row}})).plugins["toy"]
    assert (entry.offers, entry.inputs, entry.paper, entry.maturity) == ((), (), {}, "")


def test_reserved_slugs_are_known() -> None:
    assert parse(json.dumps(WHOLE)).reserved == {"toy", "game"}


DAMAGED = {
    "empty": "",
    "cut off": json.dumps(WHOLE)[:-20],
    "a list": "[]",
    "a number": "3",
    "without plugins": json.dumps({"registry": {"reserved": []}}),
    "without reservations": json.dumps({"plugins": {}}),
    "plugins as a list": json.dumps({**WHOLE, "plugins": []}),
    "a row of text": json.dumps({**WHOLE, "plugins": {"toy": "a toy"}}),
    "a row without a distribution": json.dumps(
        {**WHOLE, "plugins": {"toy": {"title": "T", "summary": "S."}}}
    ),
    "a row with an unknown key": json.dumps({**WHOLE, "plugins": {"toy": {**ROW, "colour": "red"}}}),
    "an offer without a name": json.dumps(
        {**WHOLE, "plugins": {"toy": {**ROW, "offers": [{"kind": "model"}]}}}
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_catalogue_is_told_with_the_way_to_mend_it(damage: str) -> None:
    with pytest.raises(CatalogueUnreadable) as caught:
        parse(DAMAGED[damage])
    assert "python -m pip install --force-reinstall --no-deps separata" in caught.value.remedy


def test_the_copy_that_ships_with_the_core_can_be_read() -> None:
    assert all(slug == entry.slug for slug, entry in catalogue().plugins.items())
