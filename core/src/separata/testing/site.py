"""A folder of distributions that look installed, so that tests meet real metadata without installing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path

from separata.discovery import GROUP, Installed


class Site:
    """A folder for ``sys.path`` or ``PYTHONPATH`` that holds plugins with their metadata.

    Args:
        folder: Where to write; it is created.

    >>> site = Site(tmp_path)  # doctest: +SKIP
    >>> site.add("toy", hooks="@hookimpl\\ndef separata_offers(): yield …")  # doctest: +SKIP
    >>> Registry(site.installed())  # doctest: +SKIP
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        slug: str,
        hooks: str = "",
        *,
        dist: str = "",
        version: str = "1.0",
        summary: str = "A plugin for tests.",
        requires: Iterable[str] = ("separata",),
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Add a distribution that claims a slug.

        Args:
            slug: The slug, also the name of its package, ``separata_<slug>``.
            hooks: Source of its hook module, after ``from separata import *`` of the records and ``hookimpl``.
            dist: Name of the distribution; ``separata-<slug>`` if not given.
            version: Its version.
            summary: Its one-line summary.
            requires: Its requirements.
            files: More modules of its package, name to source.
        """
        package = "separata_" + slug.replace("-", "_")
        self._write(f"{package}/__init__.py", '"""A plugin for tests."""\n')
        header = "from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl\n\n"
        self._write(f"{package}/_plugin.py", header + hooks)
        for name, source in (files or {}).items():
            self._write(f"{package}/{name}", source)
        self.add_metadata(
            dist or f"separata-{slug}",
            version=version,
            summary=summary,
            requires=requires,
            entry_points={slug: f"{package}._plugin"},
        )

    def add_metadata(
        self,
        dist: str,
        *,
        version: str = "1.0",
        summary: str = "",
        requires: Iterable[str] = (),
        entry_points: Mapping[str, str] | None = None,
    ) -> None:
        """Add a distribution's metadata alone: slug to hook module in ``entry_points``."""
        folder = f"{dist.replace('-', '_')}-{version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {dist}", f"Version: {version}", f"Summary: {summary}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        self._write(f"{folder}/METADATA", "\n".join(lines) + "\n")
        points = "\n".join(f"{slug} = {module}" for slug, module in (entry_points or {}).items())
        if points:
            self._write(f"{folder}/entry_points.txt", f"[{GROUP}]\n{points}\n")

    def installed(self) -> dict[str, list[Installed]]:
        """What the folder's distributions claim, for ``Registry(site.installed())``."""
        claims: dict[str, list[Installed]] = {}
        for distribution in distributions(path=[str(self.folder)]):
            for point in distribution.entry_points.select(group=GROUP):
                claims.setdefault(point.name, []).append(Installed(point.name, point.value, distribution))
        return claims

    def environment(self, **variables: str) -> dict[str, str]:
        """This process's environment with the folder on ``PYTHONPATH``, for a process of its own."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH", "")]))
        return {**os.environ, "PYTHONPATH": path, **variables}

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
