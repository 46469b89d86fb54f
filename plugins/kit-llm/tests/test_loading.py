from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.utils import logging

from separata.errors import InputUnavailable
from separata_kit_llm import load
from separata_kit_llm.errors import (
    HubUnavailable,
    InvalidOption,
    NoSafetensors,
    NotACausalDecoder,
    SourceNotFound,
    UnreadableModel,
)


@pytest.fixture
def folder(tmp_path: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Path:
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_gives_the_saved_model(folder: Path, model: PreTrainedModel, input_ids: Tensor) -> None:
    loaded, tokenizer = load(folder)
    assert not loaded.training
    assert tokenizer("The harbour").input_ids
    with torch.no_grad():
        assert torch.equal(loaded(input_ids).logits, model(input_ids).logits)


def test_first_layers_are_those_of_the_whole(folder: Path, model: PreTrainedModel, input_ids: Tensor) -> None:
    short, _ = load(folder, layers=2)
    with torch.no_grad():
        whole = model(input_ids, output_hidden_states=True).hidden_states
        first = short(input_ids, output_hidden_states=True).hidden_states
    assert short.config.num_hidden_layers == 2
    # The last entry has the final norm in it; the one before is the raw output of layer 1.
    torch.testing.assert_close(first[1], whole[1], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.bfloat16])
def test_dtype_is_what_was_asked_for(folder: Path, dtype: str | torch.dtype) -> None:
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert next(load(folder, dtype=dtype)[0].parameters()).dtype == wanted


def test_attention_implementation_is_passed_on(folder: Path) -> None:
    assert load(folder, attn_implementation="eager")[0].config._attn_implementation == "eager"


def test_transformers_reports_as_before(folder: Path) -> None:
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load(folder)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.parametrize(
    ("option", "value"), [("layers", 0), ("layers", 4), ("dtype", "int8"), ("dtype", "big")]
)
def test_options_out_of_range_are_refused(folder: Path, option: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"{option} is"):
        load(folder, **{option: value})


def test_nothing_at_a_path(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="smollm2") as caught:
        load(tmp_path / "none" / "there")
    assert len(str(caught.value).splitlines()) == 2


def test_a_file_that_is_no_gguf(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(SourceNotFound, match=r"no \.gguf file"):
        load(tmp_path / "model.bin")


def test_a_damaged_gguf(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(UnreadableModel, match=r"model\.gguf"):
        load(tmp_path / "model.gguf")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableModel, match="can't be loaded"):
        load(tmp_path)


def test_pickled_weights_are_refused_unopened(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"would fail if it were opened")
    with pytest.raises(NoSafetensors, match="no weights in safetensors"):
        load(folder)


def test_an_encoder_is_no_decoder(tmp_path: Path) -> None:
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertForMaskedLM(BertConfig(vocab_size=20, **shape)).save_pretrained(tmp_path)
    with pytest.raises(NotACausalDecoder, match="BertForMaskedLM"):
        load(tmp_path)


def test_an_encoder_decoder_is_no_decoder(tmp_path: Path) -> None:
    config = T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(NotACausalDecoder):
        load(tmp_path)


def test_code_that_comes_with_a_model_is_not_run(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "mine"
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('run')")
    with pytest.raises(UnreadableModel):
        load(folder)


def test_a_hub_id_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HubUnavailable, match="nobody/nothing") as caught:
        load("nobody/nothing")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.inputs
def test_smollm2_is_real() -> None:
    try:
        model, tokenizer = load("smollm2")
    except InputUnavailable as error:
        pytest.skip(str(error))
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    with torch.no_grad():
        assert tokenizer.decode(model(**prompt).logits[0, -1].argmax()) == " Paris"
