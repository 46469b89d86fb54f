"""Figures."""

import sys

import pytest
import torch

from separata.errors import PackageMissing
from separata_mixfp4.plots import MOST, crest_figure, save
from separata_mixfp4.quantizer import quantize
from separata_mixfp4.report import CrestFactorReport


def test_a_figure_is_written(tensors, tmp_path):
    pytest.importorskip("matplotlib")
    report = CrestFactorReport().fit({**tensors, "stored": quantize(tensors["flat"])})
    save(report, tmp_path / "crest.png")
    assert (tmp_path / "crest.png").read_bytes().startswith(b"\x89PNG")


def test_of_many_tensors_some_are_drawn():
    pytest.importorskip("matplotlib")
    report = CrestFactorReport().fit({str(number): torch.ones(1, 16) for number in range(30)})
    left, right, _ = crest_figure(report).axes
    assert len(left.lines) == MOST + 1
    assert len(right.lines[0].get_xdata()) == 30


def test_without_matplotlib_it_says_what_to_install(tensors, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PackageMissing, match="matplotlib"):
        crest_figure(CrestFactorReport().fit(tensors))
