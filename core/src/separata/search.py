"""Search over plugins and their offers, installed and catalogued, by words, kind and tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import registry as registries
from .catalog import CatalogueOffer
from .records import Found, Kind, Offer
from .registry import Registry


def find(
    text: str = "", *, kind: Kind | None = None, tags: Iterable[str] = (), registry: Registry | None = None
) -> list[Found]:
    """Search what is installed and what is catalogued.

    Args:
        text: Words that must all occur in a row's name, summary, tags, or its paper's title and field.
        kind: Only offers of this kind. Installed plugins that the catalogue does not know are then loaded
            (their light hook module) to see what they offer; without kind and tags nothing is imported.
        tags: Only offers that carry all of these.
        registry: The registry to search; the process's own if not given.
    """
    registry = registry or registries.default()
    wanted = frozenset(tags)
    words = _plain(text).split()
    rows = [*_catalogued(registry), *_foreign(registry, look_inside=bool(kind or wanted))]
    return [
        row
        for row, haystack in rows
        if all(word in haystack for word in words) and kind in (None, row.kind) and wanted <= row.tags
    ]


def _catalogued(registry: Registry) -> Iterator[tuple[Found, str]]:
    installed = set(registry.slugs())
    for slug, entry in registry.known.plugins.items():
        about = _plain(slug, entry.title, entry.summary, *entry.fields)
        yield from _rows(slug, entry.dist, entry.summary, slug in installed, about, entry.offers)


def _foreign(registry: Registry, *, look_inside: bool) -> Iterator[tuple[Found, str]]:
    for slug in registry.slugs():
        if slug in registry.known.plugins:
            continue
        claim = registry.installed(slug)
        plugin = registry.loadable(slug) if look_inside else None
        offers = plugin.offers if plugin else ()
        yield from _rows(slug, claim.dist, claim.summary, True, _plain(slug, claim.summary), offers)


def _rows(
    slug: str,
    dist: str,
    summary: str,
    installed: bool,
    about: str,
    offers: Iterable[Offer | CatalogueOffer],
) -> Iterator[tuple[Found, str]]:
    yield Found(slug, kind=None, summary=summary, dist=dist, installed=installed), about
    for offer in offers:
        row = Found(
            f"{slug}/{offer.name}",
            kind=offer.kind,
            summary=offer.summary,
            tags=offer.tags,
            dist=dist,
            installed=installed,
        )
        yield row, f"{about} {_plain(offer.name, offer.summary, *offer.tags)}"


def _plain(*texts: str) -> str:
    return " ".join(texts).lower().replace("-", " ")
