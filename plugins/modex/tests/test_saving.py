"""Transformers models take the heads, and networks come back bit for bit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from separata.errors import PackageMissing, SeparataError
from separata_modex import MoDEXClassifier, errors, load_network, modex_loss, modexify, save_network

transformers = pytest.importorskip("transformers")
TOKENS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
MASK = (TOKENS > 0).long()


def text_classifier(kind: str) -> Any:
    """A random model of a thousand parameters or so, in evaluation mode."""
    settings = {
        "vocab_size": 20,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "num_labels": 3,
        "pad_token_id": 0,
    }
    config = transformers.AutoConfig.for_model(kind, **settings)
    return transformers.AutoModelForSequenceClassification.from_config(config).eval()


@pytest.mark.parametrize("kind", ["bert", "llama", "roberta", "distilbert"])
def test_logits_of_a_transformers_model_become_evidence(kind: str) -> None:
    model = text_classifier(kind)
    with torch.no_grad():
        expected = model(input_ids=TOKENS, attention_mask=MASK).logits
    network = modexify(model)
    found = network(input_ids=TOKENS, attention_mask=MASK)
    torch.testing.assert_close(found.concentration, expected.exp() + 1e-6)
    modex_loss(found.law, torch.tensor([0, 2])).backward()
    assert all(parameter.grad is not None for parameter in network.head.parameters())
    assert model.get_input_embeddings().weight.grad.abs().sum() > 0


def test_labels_belong_to_the_loss() -> None:
    with pytest.raises(errors.InvalidSetting, match="takes no labels"):
        modexify(text_classifier("bert"))(input_ids=TOKENS, labels=torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("kind", "dtype", "spectral"), [("bert", torch.float32, True), ("llama", torch.bfloat16, False)]
)
def test_a_transformers_model_comes_back_bit_for_bit(
    tmp_path: Path, kind: str, dtype: torch.dtype, spectral: bool
) -> None:
    network = modexify(text_classifier(kind).to(dtype), hidden=16, spectral=spectral).eval()
    save_network(network, tmp_path / "network")
    loaded = load_network(tmp_path / "network")
    before, after = (made(input_ids=TOKENS, attention_mask=MASK) for made in (network, loaded))
    assert all(torch.equal(first, second) for first, second in zip(before, after, strict=True))
    assert {name: part.dtype for name, part in loaded.state_dict().items()} == {
        name: part.dtype for name, part in network.state_dict().items()
    }


def test_a_torch_module_comes_back_in_the_same_architecture(tmp_path: Path) -> None:
    def build(width: int = 7) -> nn.Sequential:
        return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 3))

    network, rows = modexify(build()).eval(), torch.randn(4, 5)
    save_network(network, tmp_path)
    for model in (build(), modexify(build())):
        loaded = load_network(tmp_path, model)
        assert all(
            torch.equal(first, second) for first, second in zip(network(rows), loaded(rows), strict=True)
        )
    with pytest.raises(errors.InvalidSetting, match="give the model too"):
        load_network(tmp_path)
    with pytest.raises(errors.InvalidSetting, match="does not fit"):
        load_network(tmp_path, build(9))


def test_without_transformers_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_network(modexify(text_classifier("bert")), tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(PackageMissing, match=r"separata-modex\[llm\]"):
        load_network(tmp_path)


def test_a_saved_estimator_is_no_network(tmp_path: Path) -> None:
    MoDEXClassifier((4,), epochs=1).fit(torch.randn(8, 2).numpy(), [0, 1] * 4).save(tmp_path)
    with pytest.raises(SeparataError, match="holds a estimator of modex"):
        load_network(tmp_path)
