"""Fetching one input through the package client that the user has configured: pip, npm, apt or the hub."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import HashMismatch, InputUnavailable
from .records import Input

_MISMATCH = "nothing of it was used: check your package index, or tell the plugin's author"


def fetch(record: Input, folder: Path) -> None:
    """Put an input's member into a folder, under the path that it has in its archive.

    Raises:
        InputUnavailable: If the client is missing or fails, or the archive lacks the member.
        HashMismatch: If the archive is not the one that the record names; nothing of it is unpacked.
    """
    if record.source == "hub":
        _fetch_snapshot(record, folder)
    else:
        _fetch_archive(record, folder)
    if not (folder / record.path).exists():
        raise InputUnavailable(
            f"input {record.name!r}: {record.origin} holds no {record.path}",
            "tell the plugin's author: the member's path is wrong",
        )


def _fetch_archive(record: Input, folder: Path) -> None:
    # Inside the folder: what a killed process leaves is then removed with it.
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=folder) as scratch:
        archive = _CLIENTS[record.source](record, Path(scratch))
        _check(record, archive)
        try:
            _unpack(record, archive, folder)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise InputUnavailable(
                f"input {record.name!r}: {archive.name} can't be unpacked: {error}",
                "nothing of it was kept: tell the plugin's author",
            ) from error


def _pip(record: Input, scratch: Path) -> Path:
    form = "--only-binary=:all:" if record.source == "wheel" else "--no-binary=:all:"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted, fetched = scratch / "wanted.txt", scratch / "fetched"
    # pip is told the hash because it runs an sdist's build backend before it hands the sdist over.
    wanted.write_text(f"{record.origin} --hash=sha256:{record.sha256}\n", "utf-8")
    _run(
        record,
        [*command, form, "--require-hashes", "--dest", str(fetched), "--requirement", str(wanted)],
        scratch,
    )
    return _only_file(record, fetched)


def _npm(record: Input, scratch: Path) -> Path:
    _need(record, "npm", "install Node.js, which brings npm")
    _run(record, ["npm", "pack", "--silent", "--ignore-scripts", record.origin], scratch)
    return _only_file(record, scratch)


def _apt(record: Input, scratch: Path) -> Path:
    _need(
        record, "apt-get", "it ships as a Debian package: fetch it on Debian or Ubuntu, or download the .deb"
    )
    _need(record, "dpkg-deb", "install dpkg, which unpacks a .deb without installing it")
    _run(record, ["apt-get", "download", record.origin], scratch, hint="run `apt-get update` first")
    return _only_file(record, scratch)


_CLIENTS: dict[str, Callable[[Input, Path], Path]] = {
    "wheel": _pip,
    "sdist": _pip,
    "npm": _npm,
    "debian": _apt,
}


def _fetch_snapshot(record: Input, folder: Path) -> None:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise InputUnavailable(
            f"input {record.name!r} comes from the hub, and huggingface_hub is not installed",
            "python -m pip install huggingface_hub",
        ) from error
    repository, _, revision = record.origin.partition("@")
    try:
        snapshot_download(repository, revision=revision or None, local_dir=folder)
    except Exception as error:
        raise InputUnavailable(
            f"input {record.name!r}: {record.origin} could not be fetched: {type(error).__name__}",
            "check the connection to the hub; once fetched it works offline",
        ) from error


def _run(record: Input, command: Sequence[str], folder: Path, hint: str = "") -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        last = lines[-1].strip() if lines else f"exit code {done.returncode}"
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise HashMismatch(
                f"input {record.name!r}: {record.origin} is not what its record names: {last}", _MISMATCH
            )
        raise InputUnavailable(
            f"input {record.name!r}: {record.source} {record.origin} could not be fetched: {last}",
            hint
            or f"check the connection and that {command[0]} reaches its index; once fetched it works offline",
        )


def _need(record: Input, program: str, remedy: str) -> None:
    if shutil.which(program) is None:
        raise InputUnavailable(f"input {record.name!r} needs {program}, which is not installed", remedy)


def _only_file(record: Input, scratch: Path) -> Path:
    files = [path for path in scratch.iterdir() if path.is_file()]
    if len(files) != 1:
        raise InputUnavailable(
            f"input {record.name!r}: {record.origin} gave {len(files)} files", "name one exact version"
        )
    return files[0]


def _check(record: Input, archive: Path) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != record.sha256:
        raise HashMismatch(
            f"input {record.name!r}: {archive.name} has sha256 {digest}, its record says {record.sha256}",
            _MISMATCH,
        )


def _unpack(record: Input, archive: Path, folder: Path) -> None:
    if record.source == "debian":
        _run(record, ["dpkg-deb", "-x", str(archive), str(folder)], folder)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            # extract() drops absolute paths and "..", so a hostile name can't leave the folder.
            for name in opened.namelist():
                if _wanted(name, record.path):
                    opened.extract(name, folder)
    else:
        with tarfile.open(archive) as opened:
            members = [member for member in opened if _wanted(member.name, record.path)]
            opened.extractall(folder, members, filter="data")


def _wanted(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(f"{path.rstrip('/')}/")
