"""Figures are written whole, in the format of their name, and ask for matplotlib by the plugin's extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from separata import figures
from separata.errors import InvalidConfig, PackageMissing


def test_without_matplotlib_the_error_names_the_plugins_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PackageMissing, match=r"matplotlib is not installed\npython -m pip .*'toy\[plot\]'"):
        figures.figure(4, 3, dist="toy")


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_suffix_says_the_format(suffix: str, start: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plugins bring it")
    path = tmp_path / "new folder" / f"plot.{suffix}"
    drawn = figures.figure(4, 3, dist="toy")
    drawn.add_subplot().plot([1, 2])
    figures.save(drawn, path)
    assert path.read_bytes().startswith(start)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["plot", "plot.docx"])
def test_a_name_of_no_format_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plugins bring it")
    with pytest.raises(InvalidConfig, match=r"\.png, \.pdf or \.svg"):
        figures.save(figures.figure(4, 3, dist="toy"), tmp_path / name)
    assert not list(tmp_path.iterdir())
