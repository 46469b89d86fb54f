"""Fetching: each package client, what is refused, and that nothing of a refused archive is left or run."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from separata import fetching
from separata.errors import HashMismatch, InputUnavailable
from separata.fetching import fetch
from separata.records import Input

CSV = "day,price\n1,2.5\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the only package index there is."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The empty folder that is to be filled."""
    made = tmp_path / "cache" / "prices"
    made.mkdir(parents=True)
    return made


def digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def wheel(index: Path, **members: str) -> Path:
    """A wheel of the distribution ``prices``, with its metadata."""
    archive = index / "prices-1.0-py3-none-any.whl"
    info = "prices-1.0.dist-info"
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in members.items():
            opened.writestr(name.replace("__", "/"), text)
        opened.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: prices\nVersion: 1.0\n")
        opened.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr(f"{info}/RECORD", "")
    return archive


BACKEND = """
import pathlib
pathlib.Path(r"{trace}").touch()

def prepare_metadata_for_build_wheel(folder, config=None):
    info = pathlib.Path(folder) / "prices-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: prices\\nVersion: 1.0\\n")
    return info.name

def build_wheel(*_):
    raise NotImplementedError
"""


def sdist(index: Path, trace: Path) -> Path:
    """An sdist whose own build backend leaves a trace when it runs."""
    archive = index / "prices-1.0.tar.gz"
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    members = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: prices\nVersion: 1.0\n",
        "pyproject.toml": project,
        "backend.py": BACKEND.format(trace=trace),
        "data/prices.csv": CSV,
    }
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in members.items():
            add(opened, f"prices-1.0/{name}", text)
    return archive


def add(opened: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(text.encode())
    opened.addfile(member, io.BytesIO(text.encode()))


def named(**fields: Any) -> Input:
    return Input("prices", licence="CC0-1.0", **fields)


def test_a_member_of_a_wheel_is_put_under_its_own_path(index: Path, folder: Path) -> None:
    archive = wheel(index, prices__data__a="1", prices__data__b="2", prices__code="3")
    fetch(named(wheel="prices==1.0", path="prices/data", sha256=digest(archive)), folder)
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["a", "b"]
    assert (folder / "prices/data/a").read_text() == "1"


def test_a_wheel_with_another_hash_leaves_nothing(index: Path, folder: Path) -> None:
    wheel(index, prices__data="1")
    with pytest.raises(HashMismatch) as caught:
        fetch(named(wheel="prices==1.0", sha256="0" * 64), folder)
    assert "input 'prices': prices==1.0 is not what its record names" in caught.value.problem
    assert list(folder.iterdir()) == []


def test_a_distribution_that_the_index_does_not_have_is_told_with_pips_own_words(
    index: Path, folder: Path
) -> None:
    wheel(index)
    with pytest.raises(InputUnavailable) as caught:
        fetch(named(wheel="prices==2.0", sha256="0" * 64), folder)
    assert (
        "could not be fetched: ERROR: No matching distribution found for prices==2.0" in caught.value.problem
    )
    assert "once fetched it works offline" in caught.value.remedy


def test_a_member_of_an_sdist_is_put_under_its_own_path(index: Path, folder: Path, tmp_path: Path) -> None:
    archive = sdist(index, tmp_path / "trace")
    fetch(named(sdist="prices==1.0", path="prices-1.0/data/prices.csv", sha256=digest(archive)), folder)
    assert (folder / "prices-1.0/data/prices.csv").read_text() == CSV


def test_an_sdist_with_another_hash_is_refused_before_its_build_backend_runs(
    index: Path, folder: Path, tmp_path: Path
) -> None:
    sdist(index, tmp_path / "trace")
    with pytest.raises(HashMismatch):
        fetch(named(sdist="prices==1.0", sha256="0" * 64), folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_member_of_an_npm_package_is_put_under_its_own_path(folder: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "prices", "version": "1.0.0", "license": "MIT"}')
    (package / "prices.csv").write_text(CSV)
    packed = subprocess.run(
        ["npm", "pack", "--silent", str(package)], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    sha256 = digest(tmp_path / packed.stdout.strip())
    fetch(named(npm=str(package), path="package/prices.csv", sha256=sha256), folder)
    assert (folder / "package/prices.csv").read_text() == CSV


def stand_in_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """An ``apt-get`` that comes first on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_a_file_of_a_debian_package_is_put_under_its_own_path(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: prices\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: d\n"
    )
    (tree / "usr/share").mkdir(parents=True)
    (tree / "usr/share/prices.csv").write_text(CSV)
    archive = tmp_path / "prices.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(archive)], check=True, capture_output=True)
    stand_in_apt(monkeypatch, tmp_path, f'[ "$*" = "download prices=1.0" ] && cp {archive} .')
    fetch(named(debian="prices=1.0", path="usr/share/prices.csv", sha256=digest(archive)), folder)
    assert (folder / "usr/share/prices.csv").read_text() == CSV


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_what_apt_does_not_find_is_told_with_the_usual_remedy(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_apt(monkeypatch, tmp_path, "echo 'E: Unable to locate package prices' >&2; exit 100")
    with pytest.raises(
        InputUnavailable, match=r"Unable to locate package prices\nrun `apt-get update` first"
    ):
        fetch(named(debian="prices=1.0", sha256="0" * 64), folder)


@pytest.mark.parametrize(
    ("source", "program", "remedy"), [("npm", "npm", "Node.js"), ("debian", "apt-get", "download the .deb")]
)
def test_a_client_that_is_missing_is_named_with_the_way_to_get_it(
    source: str, program: str, remedy: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputUnavailable) as caught:
        fetch(named(**{source: "prices"}, sha256="0" * 64), folder)
    assert f"needs {program}, which is not installed" in caught.value.problem
    assert remedy in caught.value.remedy


def tar_of(member: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as opened:
        add(opened, member, "outside")
    return content.getvalue()


def outside_of(folder: Path) -> list[Path]:
    """Files called outside that are not below the folder."""
    everywhere = [*folder.parents[1].rglob("outside"), *Path("/").glob("outside")]
    return [path for path in everywhere if folder not in path.parents]


def archived(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes) -> Input:
    """An input whose client hands over these bytes; whole, since it names no member."""

    def client(record: Input, scratch: Path) -> Path:
        (scratch / name).write_bytes(content)
        return scratch / name

    monkeypatch.setitem(fetching._CLIENTS, "npm", client)
    return named(npm="prices@1", sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("hostile", ["../outside", "a/../../outside"])
def test_a_member_of_a_tar_that_would_leave_the_folder_is_refused(
    hostile: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputUnavailable, match="can't be unpacked"):
        fetch(archived(monkeypatch, "prices.tgz", tar_of(hostile)), folder)
    assert outside_of(folder) == []


def test_a_member_of_a_tar_with_an_absolute_name_stays_in_the_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(archived(monkeypatch, "prices.tgz", tar_of(str(tmp_path / "outside"))), folder)
    assert outside_of(folder) == []


def test_a_link_in_a_tar_that_points_out_of_the_folder_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as opened:
        link = tarfile.TarInfo("way-out")
        link.type, link.linkname = tarfile.SYMTYPE, "../.."
        opened.addfile(link)
    with pytest.raises(InputUnavailable, match="can't be unpacked"):
        fetch(archived(monkeypatch, "prices.tgz", content.getvalue()), folder)


@pytest.mark.parametrize("hostile", ["../outside", "/outside", "a/../../outside"])
def test_a_member_of_a_zip_that_would_leave_the_folder_stays_in_it(
    hostile: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        opened.writestr(hostile, "outside")
    fetch(archived(monkeypatch, "prices.zip", content.getvalue()), folder)
    assert outside_of(folder) == []


def test_a_member_that_is_not_there_is_told_with_where_it_was_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = attrs.evolve(archived(monkeypatch, "prices.tgz", tar_of("prices/data")), path="prices/date")
    with pytest.raises(InputUnavailable, match="'prices': prices@1 holds no prices/date"):
        fetch(record, folder)


@pytest.mark.parametrize("path", ["prices/data", "prices", "prices/"])
def test_a_path_may_name_a_file_or_a_folder(path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch(attrs.evolve(archived(monkeypatch, "prices.tgz", tar_of("prices/data")), path=path), folder)
    assert (folder / "prices/data").read_text() == "outside"


@pytest.mark.parametrize("source", ["npm", "debian"])
def test_an_archive_with_another_hash_is_refused_whichever_client_brought_it(
    source: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client(record: Input, scratch: Path) -> Path:
        (scratch / "prices.tgz").write_bytes(tar_of("prices"))
        return scratch / "prices.tgz"

    monkeypatch.setitem(fetching._CLIENTS, source, client)
    with pytest.raises(HashMismatch, match="its record says 000"):
        fetch(named(**{source: "prices"}, sha256="0" * 64), folder)
    assert list(folder.iterdir()) == []


def test_a_path_is_no_prefix_of_another_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = attrs.evolve(archived(monkeypatch, "prices.tgz", tar_of("prices-old/data")), path="prices")
    with pytest.raises(InputUnavailable, match="holds no prices"):
        fetch(record, folder)


BROKEN = [b"", b"neither a zip nor a tar", b"\x1f\x8b broken gzip", tar_of("prices")[:60]]


@pytest.mark.parametrize("content", BROKEN)
def test_what_is_no_archive_is_told(content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputUnavailable, match="can't be unpacked"):
        fetch(archived(monkeypatch, "prices.bin", content), folder)


@pytest.mark.parametrize("names", [[], ["one.tgz", "two.tgz"]])
def test_a_client_that_does_not_give_one_file_is_told(
    names: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(record: Input, command: object, scratch: Path) -> None:
        for name in names:
            (scratch / name).touch()

    monkeypatch.setattr(fetching, "_run", run)
    monkeypatch.setattr(fetching.shutil, "which", lambda _: "/usr/bin/npm")
    with pytest.raises(InputUnavailable, match=f"gave {len(names)} files"):
        fetch(named(npm="prices", sha256="0" * 64), folder)


def test_a_hub_input_is_handed_over_with_its_revision(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str | None]] = []

    def snapshot_download(repository: str, *, revision: str | None, local_dir: Path) -> None:
        calls.append((repository, revision))
        (local_dir / "prices.csv").write_text(CSV)

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    fetch(named(hub="org/prices@v1"), folder)
    fetch(named(hub="org/prices"), folder)
    assert calls == [("org/prices", "v1"), ("org/prices", None)]


def test_a_hub_input_that_lacks_its_member_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = SimpleNamespace(snapshot_download=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    with pytest.raises(InputUnavailable, match="org/prices holds no train"):
        fetch(named(hub="org/prices", path="train"), folder)


def test_a_hub_that_can_not_be_reached_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot_download(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    with pytest.raises(InputUnavailable, match="could not be fetched: ConnectionError"):
        fetch(named(hub="org/prices"), folder)


def test_without_the_hubs_client_the_remedy_is_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputUnavailable, match="python -m pip install huggingface_hub"):
        fetch(named(hub="org/prices"), folder)
