"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import WriteFailed


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Give a temporary file that becomes ``path`` when the block ends well, and vanishes otherwise.

    Raises:
        WriteFailed: If the disk is full, the place can't be written, or a folder stands there.
    """
    path = Path(path)
    with _reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The suffix is kept last: savers such as matplotlib choose the format by it.
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=f".partial{path.suffix}", dir=path.parent
        )
        os.close(handle)
        partial = Path(name)
        try:
            yield partial
            _flush(partial)
            partial.chmod(0o666 & ~_umask())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Give a temporary folder that becomes ``path`` when the block ends well, and vanishes otherwise.

    A folder that stands at ``path`` already is replaced only then.

    Raises:
        WriteFailed: If the disk is full, the place can't be written, or a file stands there.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise WriteFailed(f"{path} is a file", "name a folder")
    with _reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=".partial", dir=path.parent))
        try:
            yield partial
            for file in partial.rglob("*"):
                if file.is_file():
                    _flush(file)
            partial.chmod(0o777 & ~_umask())
            _swap(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def remove_partials(path: Path) -> None:
    """Remove what a killed process left of an earlier attempt at ``path``; call it under a lock."""
    for partial in path.parent.glob(f".{path.name}-*.partial"):
        shutil.rmtree(partial, ignore_errors=True)


def _swap(partial: Path, path: Path) -> None:
    if not path.exists():
        partial.rename(path)
        return
    # A folder can't be renamed onto a full one, so the old one steps aside inside the new one's place.
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=".partial", dir=path.parent))
    path.rename(old / "old")
    try:
        partial.rename(path)
    except BaseException:
        (old / "old").rename(path)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WriteFailed(
                f"the disk is full while {path} was written; nothing half-written was left",
                f"free some space in {path.parent}, or choose another folder",
            ) from error
        if error.errno in _REFUSALS and _concerns(error, path):
            raise WriteFailed(
                f"{path} can't be written: {error.strerror}", "choose a place that you may write to"
            ) from error
        raise


_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)


def _concerns(error: OSError, path: Path) -> bool:
    """Whether an error is about writing the path; what fills it may fail to read something else."""
    if error.filename is None:
        return True
    named, path = Path(os.fsdecode(error.filename)).absolute(), path.absolute()
    return named == path or named in path.parents or path.parent in named.parents
