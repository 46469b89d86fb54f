"""Figures are labelled, and ask for matplotlib by name; test_cli writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from separata.errors import PackageMissing
from separata_oea.latency import fit_latency
from separata_oea.plots import pareto, time_against_experts
from separata_oea.timing import StepTime

ROWS: list[dict[str, Any]] = [
    {"layer": "all", "routing": name, "k0": k0, "experts_hit": hit, "cross_entropy": loss}
    for name, k0, hit, loss in [("plain", 4, 20, 1.0), ("oea", 2, 14, 1.1), ("pruned", 2, 14, 1.3)]
]
TIMES = [StepTime("plain", hit, 0.001 * hit) for hit in (4, 8, 9)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved."""
    pytest.importorskip("matplotlib")
    found: list[Any] = []
    monkeypatch.setattr("separata.figures.save", lambda figure, _: found.append(figure))
    return found


def test_axes_say_what_they_show(drawn: list[Any]) -> None:
    pareto(ROWS, Path("x.png"), batch=16)
    time_against_experts(TIMES, fit_latency([4, 8, 9], [0.004, 0.008, 0.009]), Path("x.png"))
    labels = [(figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) for figure in drawn]
    assert labels == [
        ("distinct experts a layer and step", "cross-entropy, nats a token"),
        ("distinct experts a step, all layers", "milliseconds a step"),
    ]
    names = [[text.get_text() for text in figure.axes[0].get_legend().get_texts()] for figure in drawn]
    assert names == [["OEA", "plain top-k0", "plain top-k, k = 4"], ["plain", "1 ms an expert, R² 1.000"]]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PackageMissing, match=r"separata-oea\[plot\]"):
        pareto(ROWS, Path("x.png"), batch=16)
