from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from separata_eco import ECOAdamW, convert_, load_checkpoint, load_weights, save_checkpoint, save_weights
from separata_eco.errors import BadCheckpoint
from separata_kit_llm import tiny


def network(**options: Any) -> nn.Sequential:
    return convert_(nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 64)), **options)


@pytest.mark.parametrize("quantizer", ["fp8_e4m3", "int4", "mixfp4"])
def test_weights_come_back_bit_for_bit(quantizer: str, tmp_path: Path) -> None:
    saved = network(quantizer=quantizer, granularity=32 if quantizer == "int4" else None)
    save_weights(saved, tmp_path / "weights")
    plain = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 64))
    loaded = load_weights(plain, tmp_path / "weights")
    x = torch.randn(3, 64)
    assert torch.equal(loaded(x), saved(x))
    assert loaded[0].weight.quantizer == saved[0].weight.quantizer


def test_the_file_holds_codes_and_scales(tmp_path: Path) -> None:
    save_weights(network(), tmp_path / "weights")
    found = load_file(tmp_path / "weights" / "tensors.safetensors")
    assert found["0.weight.codes"].dtype == torch.uint8
    assert "0.weight" not in found


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    save_weights(network(), tmp_path / "weights")
    with pytest.raises(BadCheckpoint):
        load_weights(nn.Sequential(nn.Linear(64, 32)), tmp_path / "weights")


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    model = network()
    save_checkpoint(model, ECOAdamW(model.parameters()), tmp_path / "saved", step=0, config={})
    other = network(quantizer="int8")
    with pytest.raises(BadCheckpoint):
        load_checkpoint(other, ECOAdamW(other.parameters()), tmp_path / "saved")


def test_a_model_of_transformers(tmp_path: Path) -> None:
    model = convert_(tiny.llama(seed=0, hidden=32, layers=1, heads=2))
    save_weights(model, tmp_path / "weights")
    loaded = load_weights(tiny.llama(seed=1, hidden=32, layers=1, heads=2), tmp_path / "weights")
    ids = torch.arange(16)[None]
    assert torch.equal(loaded(ids).logits, model(ids).logits)
