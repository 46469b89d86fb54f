"""Inputs by name: looked up among the plugins, fetched once, there offline afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from separata import fetching, inputs
from separata.catalog import parse
from separata.errors import BlockedPlugin, HashMismatch, InputUnavailable, UnknownName
from separata.records import Input
from separata.registry import Registry
from separata.testing import Site

RegistryOf = Callable[..., Registry]

KNOWN = parse(
    json.dumps(
        {
            "registry": {"reserved": []},
            "plugins": {
                slug: {"dist": f"separata-{slug}", "title": "", "summary": "", "inputs": names}
                for slug, names in {"market": ["prices"], "weather": ["rain"]}.items()
            },
        }
    )
)


def hooks(*names: str, folder: Path = Path("/nowhere")) -> str:
    lines = [f"    yield Input({name!r}, file={str(folder / name)!r}, licence='CC0-1.0')" for name in names]
    return "@hookimpl\ndef separata_inputs():\n" + "\n".join(lines)


def test_a_file_input_is_the_file_itself(site: Site, registry_of: RegistryOf, tmp_path: Path) -> None:
    (tmp_path / "prices").write_text("1")
    site.add("market", hooks("prices", folder=tmp_path))
    assert inputs.open("prices", registry=registry_of()) == tmp_path / "prices"


def test_a_path_within_a_file_input_is_followed_from_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    record = Input("prices", file="~/data", path="a.csv", licence="")
    assert inputs.locate(record) == tmp_path / "data" / "a.csv"


def test_a_file_input_that_is_not_there_says_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(InputUnavailable, match=f"there is no {tmp_path}/prices"):
        inputs.locate(Input("prices", file=str(tmp_path / "prices"), licence=""))


def test_a_name_with_its_slug_is_looked_up_in_that_plugin(site: Site, registry_of: RegistryOf) -> None:
    site.add("market", hooks("prices"))
    site.add("bazaar", "raise RuntimeError")
    assert inputs.record("market/prices", registry=registry_of()).name == "prices"
    assert "separata_bazaar" not in sys.modules


def test_a_bare_name_loads_only_the_plugin_that_the_catalogue_names(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("market", hooks("prices"))
    site.add("bazaar", "raise RuntimeError")
    assert inputs.record("prices", registry=registry_of(KNOWN)).name == "prices"
    assert "separata_bazaar" not in sys.modules


def test_a_bare_name_that_the_catalogue_does_not_know_is_found_in_any_plugin(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("bazaar", hooks("carpets"))
    assert inputs.record("carpets", registry=registry_of(KNOWN)).name == "carpets"


def test_a_broken_plugin_does_not_hide_the_inputs_of_others(site: Site, registry_of: RegistryOf) -> None:
    site.add("bazaar", "raise RuntimeError")
    site.add("market", hooks("prices"))
    assert inputs.record("prices", registry=registry_of()).name == "prices"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("price", "did you mean prices?"),
        ("market/price", "did you mean market/prices"),
        ("qqqq", "see `separata inputs`"),
    ],
)
def test_an_unknown_name_is_answered_with_the_closest_ones(
    name: str, says: str, site: Site, registry_of: RegistryOf
) -> None:
    site.add("market", hooks("prices", "rents"))
    with pytest.raises(UnknownName) as caught:
        inputs.record(name, registry=registry_of())
    assert says in caught.value.remedy


@pytest.mark.parametrize("name", ["rain", "weather/rain"])
def test_an_input_of_a_plugin_that_is_not_installed_is_answered_with_what_to_install(
    name: str, registry_of: RegistryOf
) -> None:
    with pytest.raises(
        UnknownName, match="it ships in separata-weather: python -m pip install separata-weather"
    ):
        inputs.record(name, registry=registry_of(KNOWN))


def test_an_input_of_a_plugin_that_is_left_out_says_so(site: Site, registry_of: RegistryOf) -> None:
    site.add("market", hooks("prices"))
    with pytest.raises(BlockedPlugin):
        inputs.record("market/prices", registry=registry_of(allow=[]))


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Input:
    """A record of a wheel in the only index that pip knows."""
    index = tmp_path / "index"
    index.mkdir()
    archive = index / "prices-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("prices/a.csv", "1")
        opened.writestr(
            "prices-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: prices\nVersion: 1.0\n"
        )
        opened.writestr("prices-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        opened.writestr("prices-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Input("prices", wheel="prices==1.0", path="prices/a.csv", sha256=sha256, licence="CC0-1.0")


def test_a_fetched_input_is_there_without_pip_the_second_time(
    wheel: Input, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = inputs.locate(wheel)
    assert first.read_text() == "1"
    monkeypatch.setattr(fetching.sys, "executable", "/no/python")
    assert inputs.locate(wheel) == first


def test_a_fetch_that_is_refused_keeps_nothing_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client(record: Input, scratch: Path) -> Path:
        (scratch / "prices.tgz").write_text("changed")
        return scratch / "prices.tgz"

    monkeypatch.setitem(fetching._CLIENTS, "npm", client)
    with pytest.raises(HashMismatch):
        inputs.locate(Input("prices", npm="prices@1", sha256="0" * 64, licence=""))
    kept = (tmp_path / "cache" / "inputs" / "prices").iterdir()
    assert [path.name for path in kept if path.suffix != ".lock"] == []


def test_another_hash_is_another_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(fetching, "fetch", lambda record, folder: fetched.append(record.sha256))
    for digit in "010":
        inputs.locate(Input("prices", npm="prices@1", sha256=digit * 64, licence=""))
    assert fetched == ["0" * 64, "1" * 64]
