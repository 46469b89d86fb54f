"""The user's cache: folders made once and kept, for fetched inputs, converted models and trained proofs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock

from . import registry
from .events import Preparing
from .files import atomic_folder, remove_partials


def root() -> Path:
    """The cache folder: ``SEPARATA_CACHE``, or the platform's own place for caches."""
    given = os.environ.get("SEPARATA_CACHE")
    return Path(given).expanduser() if given else platformdirs.user_cache_path("separata")


def keep(name: str, key: str, build: Callable[[Path], object]) -> Path:
    """Return the folder made under this name and key, making it now if it is not there.

    Args:
        name: What it is, such as ``inputs/smollm2``; it becomes the path below the cache folder.
        key: Everything that the content depends on; another key is another folder.
        build: Fills the empty folder it is given. If it raises, nothing is kept.

    Returns:
        The complete folder. Two processes that ask at once get the same one, made by one of them.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    folder = root() / name / digest
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{digest}.lock")):
        if not folder.exists():
            remove_partials(folder)
            registry.emit(Preparing(name))
            with atomic_folder(folder) as partial:
                build(partial)
    return folder
