"""Texts, from a Hugging Face folder on disk to answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from separata_modex import MoDEXTextClassifier, TuneConfig, errors
from separata_modex.cli import app

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *["play", "the", "song", "music", "turn", "off", "lamp", "light", "please", "now"],
]
MUSIC = ["play the song", "please play music", "play music now", "the song please"]
LIGHT = ["turn off the lamp", "light off please", "turn the light off now", "lamp off"]
TEXTS, LABELS = (MUSIC + LIGHT) * 4, (["music"] * 4 + ["light"] * 4) * 4
CONFIG = TuneConfig(steps=40, batch=8, head_rate=0.01, backbone_rate=0.01, validation=0.0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: Any) -> dict[str, Path]:
    """A random encoder, and a random decoder whose tokenizer has no padding, as folders."""
    made = {}
    settings = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    }
    for kind, special in (
        ("bert", {"pad_token": "[PAD]", "unk_token": "[UNK]"}),
        ("llama", {"eos_token": "[SEP]", "unk_token": "[UNK]"}),
    ):
        made[kind] = tmp_path_factory.mktemp(kind)
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(kind, **settings)
        transformers.AutoModel.from_config(config).save_pretrained(made[kind])
        base = tokenizers.Tokenizer(
            tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]")
        )
        base.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=base, **special).save_pretrained(made[kind])
    return made


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_it_learns_texts_and_comes_back(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    model = MoDEXTextClassifier(folders[kind], config=CONFIG, random_state=0).fit(TEXTS, LABELS)
    assert (model.predict(TEXTS) == np.array(LABELS)).all()
    frame = model.predict_uncertainty(["turn off the song", *TEXTS[:2]])
    assert set(frame["advocate"]) <= {"light", "music"}
    np.testing.assert_allclose(frame["epistemic"], frame["inter"] + frame["intra"])
    model.save(tmp_path / "model")
    loaded = MoDEXTextClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert loaded.classes_.tolist() == ["light", "music"]


def test_what_is_no_text_or_no_model_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidSetting, match="one label a text"):
        MoDEXTextClassifier(folders["bert"]).fit(TEXTS, LABELS[:3])
    with pytest.raises(errors.UnreadableTable, match="no texts"):
        MoDEXTextClassifier(folders["bert"]).fit([1, 2], ["a", "b"])
    with pytest.raises(errors.InvalidSetting, match="no model that transformers"):
        MoDEXTextClassifier(tmp_path).fit(TEXTS, LABELS)
    with pytest.raises(errors.InvalidLabels, match="one class"):
        MoDEXTextClassifier(folders["bert"]).fit(TEXTS, ["a"] * len(TEXTS))


def test_the_command_line_on_texts(folders: dict[str, Path], tmp_path: Path) -> None:
    table, other, out = str(tmp_path / "train.csv"), str(tmp_path / "other.csv"), str(tmp_path / "out")
    pd.DataFrame({"say": TEXTS, "intent": LABELS}).to_csv(table, index=False)
    pd.DataFrame({"say": ["lamp lamp song", "now now"]}).to_csv(other, index=False)

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, list(words))

    rates = ["--steps", "20", "--head-rate", "0.01", "--backbone-rate", "0.01"]
    done = run(
        "wrap",
        str(folders["bert"]),
        table,
        "--text",
        "say",
        "--target",
        "intent",
        "--out",
        out,
        *rates,
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"] == 2
    rows = json.loads(run("predict", out, table, "--text", "say", "--json").stdout)
    assert {row["class"] for row in rows} <= {"light", "music"}
    court = json.loads(run("explain", out, other, "--text", "say", "--json").stdout)
    assert sum(row["verdict"] for row in court) == pytest.approx(1)
    words = ["ood", out, "--id", table, "--ood", other, "--target", "intent", "--text", "say", "--json"]
    assert {"auroc", "ece"} < set(json.loads(run(*words).stdout))
    assert "no column text" in str(run("predict", out, table).exception)
