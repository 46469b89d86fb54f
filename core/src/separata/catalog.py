"""What exists in the extension registry, installed or not, read from the copy that ships with the core."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from .errors import CatalogueUnreadable
from .records import Kind


@attrs.frozen
class CatalogueOffer:
    """An offer as the registry knows it."""

    kind: Kind
    name: str
    summary: str
    tags: frozenset[str] = attrs.field(converter=frozenset)


@attrs.frozen
class Entry:
    """One plugin of the extension registry."""

    slug: str
    dist: str
    title: str
    summary: str
    paper: dict[str, str] = attrs.field(factory=dict)
    licence: str = ""
    maturity: str = ""
    fields: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    needs: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    offers: tuple[CatalogueOffer, ...] = ()
    claims: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    inputs: tuple[str, ...] = attrs.field(default=(), converter=tuple)


@attrs.frozen
class Catalogue:
    """The registry: its plugins by slug, and the slugs that nobody else may take."""

    plugins: dict[str, Entry]
    reserved: frozenset[str]


def parse(text: str) -> Catalogue:
    """Read the generated JSON.

    Raises:
        CatalogueUnreadable: If it is no JSON, or not laid out as a catalogue.
    """
    try:
        data: dict[str, Any] = json.loads(text)
        plugins = {}
        for slug, row in data["plugins"].items():
            offers = tuple(CatalogueOffer(**offer) for offer in row.pop("offers", ()))
            plugins[slug] = Entry(slug=slug, offers=offers, **row)
        return Catalogue(plugins, frozenset(data["registry"]["reserved"]))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable(error) from error


@cache
def catalogue() -> Catalogue:
    """The catalogue of this version of the core."""
    try:
        text = files("separata").joinpath("_catalog.json").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(error) from error
    return parse(text)


def _unreadable(error: Exception) -> CatalogueUnreadable:
    return CatalogueUnreadable(
        f"the catalogue of separata can't be read: {type(error).__name__}: {error}",
        "install it again: python -m pip install --force-reinstall --no-deps separata",
    )
