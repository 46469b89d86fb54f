"""What is installed: one entry point a plugin, read from metadata, nothing imported."""

from __future__ import annotations

import os
from functools import cache, cached_property
from importlib.metadata import Distribution, entry_points
from typing import Any

from .names import NAME, RESERVED

GROUP = "separata.plugins"


class Installed:
    """One distribution's claim to a slug.

    Args:
        slug: The entry point's name.
        module: The hook module that the entry point names.
        distribution: Where it comes from; its metadata is read when first asked for.
    """

    def __init__(self, slug: str, module: str, distribution: Distribution) -> None:
        self.slug = slug
        self.module = module
        self._distribution = distribution

    @property
    def dist(self) -> str:
        """The distribution's name."""
        return self._metadata["Name"]

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self._metadata["Version"]

    @property
    def summary(self) -> str:
        """The distribution's one-line summary."""
        return self._metadata["Summary"]

    @cached_property
    def _metadata(self) -> dict[str, str]:
        # A damaged METADATA file has no headers, or is no text at all; the plugin must still be listed.
        try:
            found: Any = self._distribution.metadata
        except UnicodeDecodeError:
            found = {}
        headers = {name: str(found.get(name) or "") for name in ("Name", "Version", "Summary")}
        return {**headers, "Name": headers["Name"] or self.slug}

    def unmet_requirement(self) -> str:
        """What the distribution asks of the core that this core is not, or nothing."""
        from packaging.requirements import InvalidRequirement, Requirement

        from . import __version__

        for text in self._distribution.requires or ():
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                return f"has an unreadable requirement {text!r}"
            if requirement.name.lower() != "separata" or (
                requirement.marker and not requirement.marker.evaluate()
            ):
                continue
            if not requirement.specifier.contains(__version__, prereleases=True):
                return f"asks for separata{requirement.specifier}, this is separata {__version__}"
        return ""


@cache
def scan() -> dict[str, list[Installed]]:
    """The claimants of each slug, from one walk over the installed distributions in this process."""
    claims: dict[str, list[Installed]] = {}
    for point in entry_points(group=GROUP):
        if point.dist is not None:
            claims.setdefault(point.name, []).append(Installed(point.name, point.value, point.dist))
    return claims


def allow_list() -> frozenset[str] | None:
    """The slugs that ``SEPARATA_PLUGINS`` allows; None if it is not set, none at all if it is empty."""
    given = os.environ.get("SEPARATA_PLUGINS")
    return None if given is None else frozenset(slug.strip() for slug in given.split(",") if slug.strip())


def words() -> dict[str, list[Installed]]:
    """The installed slugs that may be words of the command line: allowed, well formed, not reserved."""
    allowed = allow_list()
    return {
        slug: claims
        for slug, claims in sorted(scan().items())
        if (allowed is None or slug in allowed) and slug not in RESERVED and NAME.fullmatch(slug)
    }
