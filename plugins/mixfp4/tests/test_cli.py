"""The verbs."""

import json

import pytest
from typer.testing import CliRunner

from separata_mixfp4.cli import app
from separata_mixfp4.errors import InvalidSetting
from separata_mixfp4.model import QuantizedLinear
from separata_mixfp4.storage import load_model, load_tensors


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def prose(text, tmp_path):
    (tmp_path / "t.txt").write_text(text)
    return tmp_path / "t.txt"


@pytest.mark.parametrize(
    "options", [(), ("--gptq-tokens", 50), ("--rotation", 16, "--no-activations")], ids=str
)
def test_quantize_writes_a_model(folder, prose, tmp_path, options):
    told = json.loads(run("quantize", folder, tmp_path / "out", "--text", prose, "--json", *options))
    assert told["layers"] == 14
    # 4.5 bits, and the float32 scale of each layer.
    assert told["bits_per_number"] == pytest.approx(4.5 + 32 * 14 / told["numbers"])
    layers = [layer for layer in load_model(tmp_path / "out").modules() if isinstance(layer, QuantizedLinear)]
    assert len(layers) == 14
    assert "model.layers.0.mlp.up_proj" in load_tensors(tmp_path / "out" / "model.safetensors")


def test_report_tells_and_draws(folder, prose, tmp_path):
    pytest.importorskip("matplotlib")
    rows = json.loads(
        run("report", folder, "--text", prose, "--only", "keys.*", "--out", tmp_path / "c.png", "--json")
    )
    assert [row["tensor"] for row in rows] == ["keys.0", "keys.1"]
    assert all(row["mixfp4"] >= max(row["nvfp4"], row["nvint4"]) for row in rows)
    assert (tmp_path / "c.png").stat().st_size > 1000
    assert "keys.1" in run("report", folder, "--text", prose, "--only", "keys.*")


def test_eval_compares_methods(folder, prose):
    rows = json.loads(
        run(
            "eval",
            folder,
            "--text",
            prose,
            "--methods",
            "nvfp4,mixfp4",
            "--tokens",
            60,
            "--window",
            60,
            "--json",
        )
    )
    assert [row["method"] for row in rows] == ["exact", "nvfp4", "mixfp4"]


def test_an_unknown_method_is_refused(folder, tmp_path):
    with pytest.raises(InvalidSetting, match="mxfp4"):
        run("quantize", folder, tmp_path / "out", "--method", "mxfp4")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["quantize", "report", "eval"])
def test_help_has_an_example(verb):
    assert f"Example: separata mixfp4 {verb}" in " ".join(run(verb, "--help").split())
