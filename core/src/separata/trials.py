"""What a proof or a benchmark is given: its scale, seed, real inputs, and a place to keep what it trains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from . import cache, config, inputs
from .records import Scale
from .registry import Registry

if TYPE_CHECKING:
    import torch


@attrs.frozen
class Trial:
    """One run of a proof or a benchmark.

    Args:
        slug: The plugin on trial.
        registry: Where its inputs are looked up.
        scale: ``small`` is two CPU cores and at most a minute; ``full`` is GPUs.
        seed: Seed of everything random in it.
    """

    slug: str
    registry: Registry
    scale: Scale = "small"
    seed: int = 0

    def input(self, name: str) -> Path:
        """The local path of an input: the plugin's own of that name, or else any plugin's."""
        own = [record for record in self.registry.plugin(self.slug).inputs if record.name == name]
        return inputs.locate(own[0]) if own else inputs.open(name, registry=self.registry)

    def generator(self, device: str = "cpu") -> torch.Generator:
        """A random generator seeded with the trial's seed."""
        import torch

        return torch.Generator(device).manual_seed(self.seed)

    def keep(
        self, name: str, build: Callable[[Path], object], *, settings: Mapping[str, Any] | None = None
    ) -> Path:
        """A folder with what must be trained first, made once for this source, seed, scale and settings.

        Args:
            name: What it is, such as ``student``.
            build: Fills the empty folder it is given.
            settings: Whatever else the result depends on: configs, input names, versions.
        """
        key = json.dumps(
            {
                "source": self._source_digest(),
                "scale": self.scale,
                "seed": self.seed,
                "settings": config.fingerprint(dict(settings or {})),
            },
            sort_keys=True,
        )
        return cache.keep(f"trials/{self.slug}/{name}", key, build)

    def _source_digest(self) -> str:
        package = self.registry.installed(self.slug).module.partition(".")[0]
        spec = find_spec(package)
        locations = [Path(location) for location in (spec and spec.submodule_search_locations) or ()]
        files = [
            (file.relative_to(root).as_posix(), file) for root in locations for file in root.rglob("*.py")
        ]
        if spec and spec.origin and not locations:
            files = [(package, Path(spec.origin))]
        digest = hashlib.sha256()
        for name, file in sorted(files):
            digest.update(name.encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()
