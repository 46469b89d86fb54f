"""Packaging: what the wheels hold, and that they can be built from what is published beside them."""

from __future__ import annotations

import email
import os
import tarfile
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

build = pytest.importorskip("hatchling.build")

ROOT = Path(__file__).resolve().parents[1]
PARTS = {"core": "separata", "cli": "separata_cli"}


@attrs.frozen
class Wheel:
    """A built wheel, open for reading."""

    package: str
    source: Path
    opened: zipfile.ZipFile

    @property
    def names(self) -> set[str]:
        return set(self.opened.namelist())

    @property
    def info(self) -> str:
        return next(name.partition("/")[0] for name in self.names if ".dist-info/" in name)

    def text(self, name: str) -> str:
        return self.opened.read(name).decode()


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """The backend's hooks build the project of the working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture(scope="module", params=PARTS)
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wheel]:
    """The wheel of a part, built from its unpacked sdist as a user without this repository would."""
    part: str = request.param
    folder = tmp_path_factory.mktemp(part)
    with inside(ROOT / part):
        sdist = folder / build.build_sdist(str(folder))
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    with inside(sdist.with_name(sdist.name.removesuffix(".tar.gz"))):
        built = folder / build.build_wheel(str(folder))
    with zipfile.ZipFile(built) as opened_wheel:
        yield Wheel(PARTS[part], ROOT / part / "src", opened_wheel)


def test_it_holds_its_package_and_its_metadata_and_no_other_file(wheel: Wheel) -> None:
    assert {name.partition("/")[0] for name in wheel.names} == {wheel.package, wheel.info}


def test_it_holds_every_file_of_the_package(wheel: Wheel) -> None:
    tree = {
        path.relative_to(wheel.source).as_posix()
        for path in wheel.source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.names if not name.startswith(wheel.info)} == tree


def test_it_says_that_it_is_typed(wheel: Wheel) -> None:
    assert f"{wheel.package}/py.typed" in wheel.names


def test_its_name_version_and_summary_are_those_of_the_project(wheel: Wheel) -> None:
    metadata = email.message_from_string(wheel.text(f"{wheel.info}/METADATA"))
    assert metadata["Name"] == wheel.package.replace("_", "-")
    assert metadata["Version"] == "0.1.0"
    assert metadata["Summary"].endswith(".")


def test_it_needs_no_plugin_and_no_heavy_library(wheel: Wheel) -> None:
    metadata = email.message_from_string(wheel.text(f"{wheel.info}/METADATA"))
    always = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line for line in always if line.startswith(("torch", "numpy", "accelerate", "separata-"))] == []


@pytest.mark.parametrize("wheel", ["core"], indirect=True)
@pytest.mark.parametrize("name", ["_catalog.json", "__init__.pyi", "testing/__init__.pyi"])
def test_the_cores_has_the_catalogue_and_the_stubs_that_its_lazy_names_come_from(
    wheel: Wheel, name: str
) -> None:
    assert wheel.text(f"separata/{name}") == (wheel.source / "separata" / name).read_text("utf-8")


@pytest.mark.parametrize("wheel", ["cli"], indirect=True)
def test_the_command_lines_has_the_one_script(wheel: Wheel) -> None:
    points = ConfigParser()
    points.read_string(wheel.text(f"{wheel.info}/entry_points.txt"))
    assert dict(points["console_scripts"]) == {"separata": "separata_cli.main:main"}
