"""Saved work: tensors in safetensors, settings in config.json with versions; never a pickle."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from .errors import ArtifactError
from .files import atomic_folder

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
TENSORS = "tensors.safetensors"
CONFIG = "config.json"


@attrs.frozen
class Artifact:
    """What a saved folder holds.

    Args:
        tensors: Tensors by name, with the dtypes and shapes they were saved in.
        config: The settings they were made with.
        extra: Whatever else their maker wrote, as plain JSON values.
        versions: Version of each distribution that made them.
    """

    tensors: dict[str, Tensor]
    config: dict[str, Any]
    extra: dict[str, Any]
    versions: dict[str, str]


def save(
    folder: Path | str,
    *,
    slug: str,
    kind: str,
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Write a folder, whole or not at all; one that was saved before is replaced.

    Args:
        folder: Where to write.
        slug: The plugin that can read it again.
        kind: What it is to that plugin, such as ``cache`` or ``model``.
        tensors: Tensors by name, on any device; views are saved as what they show.
        config: Settings, as plain JSON values.
        extra: Anything else that is needed to read it again, as plain JSON values.

    Raises:
        WriteFailed: If it can't be written.
        ArtifactError: If the folder holds something that was not saved by this function.
    """
    described = {
        "format": FORMAT,
        "slug": slug,
        "kind": kind,
        "config": dict(config),
        "extra": dict(extra or {}),
        "versions": versions("separata", f"separata-{slug}", "torch"),
    }
    folder = Path(folder)
    _refuse_foreign(folder)
    with atomic_folder(folder) as partial:
        (partial / CONFIG).write_text(json.dumps(described, indent=2) + "\n", "utf-8")
        # clone(): tensors that share storage are refused by safetensors, and here each is saved on its own.
        _write({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, partial)
    return folder


def _write(tensors: Mapping[str, Tensor], partial: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path = partial / TENSORS
    try:
        save_file(dict(tensors), path)
    except SafetensorError as error:
        # safetensors tells a full disk in words alone.
        if os.strerror(errno.ENOSPC) in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    # safetensors lets nobody but the owner read what it writes, whatever the umask says.
    path.chmod((partial / CONFIG).stat().st_mode)


def _refuse_foreign(folder: Path) -> None:
    """Keep a folder of the user's own, named by mistake, from being replaced."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        _described(folder)
    except ArtifactError as error:
        raise ArtifactError(
            f"{folder} holds files that separata did not save", "name a new folder, or an empty one"
        ) from error


def load(folder: Path | str, *, slug: str, kind: str, device: str = "cpu") -> Artifact:
    """Read a folder that ``save`` wrote.

    Raises:
        ArtifactError: If it is missing, damaged, newer than this version, or holds something else.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    described = _described(folder)
    if (described.get("slug"), described.get("kind")) != (slug, kind):
        raise ArtifactError(
            f"{folder} holds a {described.get('kind')} of {described.get('slug')}",
            f"name a folder with a {kind} of {slug}",
        )
    if described["format"] > FORMAT:
        raise ArtifactError(
            f"{folder} has format {described['format']}; this version reads up to {FORMAT}",
            "python -m pip install --upgrade separata",
        )
    try:
        tensors = load_file(folder / TENSORS, device=device)
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"{folder / TENSORS} can't be read: {error}", "save it again") from error
    return Artifact(tensors, described["config"], described["extra"], described["versions"])


def versions(*distributions: str) -> dict[str, str]:
    """The installed version of each distribution that is installed, and of Python."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in distributions:
        try:
            found[name] = version(name)
        # The metadata of a broken installation may be no text at all.
        except (PackageNotFoundError, UnicodeDecodeError):
            continue
    return found


def _described(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        described = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ArtifactError(
            f"{path} can't be read: {error.strerror}", "name a folder that was saved"
        ) from error
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON: {error}", "save it again") from error
    wanted = {"format", "slug", "kind", "config", "extra", "versions"}
    if (
        not isinstance(described, dict)
        or not wanted <= described.keys()
        or not isinstance(described["format"], int)
    ):
        raise ArtifactError(f"{path} was not written by separata", "name a folder that was saved")
    return described
