"""The verbs read files and write tables, files and JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from typer.testing import CliRunner, Result

from separata_xkv.cli import app
from separata_xkv.errors import PromptMissing

VOCABULARY = 300


@pytest.fixture(scope="module")
def folder(llama: PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model with a tokenizer whose words are w0 to w299."""
    folder = tmp_path_factory.mktemp("model")
    words = Tokenizer(
        models.WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w0")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0").save_pretrained(folder)
    llama.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drawn = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(" ".join(f"w{drawn.randrange(1, VOCABULARY)}" for _ in range(400)))
    return path


@pytest.fixture
def run() -> Callable[..., Result]:
    def invoke(*words: Any) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return invoke


def test_analyze_writes_figures_and_numbers(
    run: Callable[..., Result], folder: Path, text: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "study"
    result = run("analyze", folder, "--text", text, "--tokens", 100, "--windows", "1,2", "--out", out)
    assert "key CKA with next" in result.output
    assert {file.name for file in out.iterdir()} == {"analysis.json", "similarity.png", "error.png"}
    assert json.loads((out / "analysis.json").read_text())["tokens"] == 100
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in out.glob("*.png"))


def test_analyze_prints_json(run: Callable[..., Result], folder: Path, text: Path) -> None:
    found = json.loads(run("analyze", folder, "--text", text, "--tokens", 60, "--json").output)
    assert found["layers"] == [0, 1, 2, 3, 4]


def test_generate_says_what_is_saved(run: Callable[..., Result], folder: Path, text: Path) -> None:
    options = ["--prompt-file", text, "--max-new-tokens", 4, "--window", 2, "--ratio", 3, "--min-length", 32]
    found = json.loads(run("generate", folder, *options, "--json").output)
    assert len(found["text"].split()) == found["new_tokens"] == 4
    assert found["compressed_tokens"] == found["prompt_tokens"] == 400
    assert found["ratio"] == pytest.approx(found["exact_cache_bytes"] / found["cache_bytes"])
    # Ranks are rounded down, and those of a model this narrow are small.
    assert 2.7 < found["ratio"] < 3.3
    assert "exact cache bytes" in run("generate", folder, *options).output


@pytest.mark.parametrize("mode", ["dense", "sr"])
def test_a_saved_prompt_is_gone_on_from(
    mode: str, run: Callable[..., Result], folder: Path, text: Path, tmp_path: Path
) -> None:
    options = ["--max-new-tokens", 3, "--json", "--window", 2, "--min-length", 32, "--mode", mode]
    kept = tmp_path / "kept"
    run("generate", folder, "--prompt-file", text, "--save-cache", kept, *options)
    first = json.loads(run("generate", folder, "--prompt", "w7 w8", "--load-cache", kept, *options).output)
    again = json.loads(run("generate", folder, "--prompt", "w7 w8", "--load-cache", kept, *options).output)
    assert first == again
    assert (first["prompt_tokens"], first["compressed_tokens"]) == (402, 400)


def test_without_a_prompt_nothing_is_generated(run: Callable[..., Result], folder: Path) -> None:
    with pytest.raises(PromptMissing, match="--prompt"):
        run("generate", folder)


def test_eval_compares_ratios_and_windows(run: Callable[..., Result], folder: Path, text: Path) -> None:
    lengths = ["--prompt-tokens", 300, "--continuation-tokens", 6]
    choice = ["--ratio", "2,8", "--window", "1,2", "--no-peers"]
    rows = json.loads(run("eval", folder, "--text", text, *lengths, *choice, "--json").output)
    assert len(rows) == 5
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert all(row["kl"] > 1e-4 for row in rows[1:])


def test_eval_scores_selective_modes_token_by_token(
    run: Callable[..., Result], folder: Path, text: Path
) -> None:
    lengths = ["--prompt-tokens", 300, "--continuation-tokens", 4]
    choice = ["--ratio", "8", "--window", "2", "--no-peers", "--mode", "sr"]
    rows = json.loads(run("eval", folder, "--text", text, *lengths, *choice, "--json").output)
    # A prompt this short consists of outliers and local chunks only, all exact.
    assert rows[1]["kl"] == pytest.approx(0, abs=1e-6)
