"""Figures are labelled, and ask for matplotlib by name; test_cli writes them."""

from __future__ import annotations

import sys

import pytest
import torch
from transformers import DynamicCache, PreTrainedModel

from separata.errors import PackageMissing
from separata_xkv import CrossLayerCKA

pytest.importorskip("matplotlib")


@pytest.fixture
def study(llama: PreTrainedModel, generator: torch.Generator) -> CrossLayerCKA:
    cache = DynamicCache(config=llama.config)
    for layer in range(5):
        cache.update(*(torch.randn(1, 2, 40, 8, generator=generator) for _ in range(2)), layer)
    return CrossLayerCKA(llama.config, windows=(1, 2)).fit(cache)


def test_panels_say_what_they_show(study: CrossLayerCKA) -> None:
    from separata_xkv.plots import heatmaps, rank_curves

    panels = [axes for axes in heatmaps(study).axes if axes.get_title()]
    assert len(panels) == 4
    assert all(axes.get_xlabel() == axes.get_ylabel() == "layer" for axes in panels)
    for axes in rank_curves(study).axes:
        assert axes.get_xlabel().startswith("compression")
        assert axes.get_ylabel() == "relative squared error"
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == ["each layer alone", "2 layers"]


def test_without_matplotlib_the_error_names_the_extra(
    study: CrossLayerCKA, monkeypatch: pytest.MonkeyPatch
) -> None:
    from separata_xkv.plots import heatmaps

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PackageMissing, match=r"separata-xkv\[plot\]"):
        heatmaps(study)
