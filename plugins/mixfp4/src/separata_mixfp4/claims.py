"""The paper's claims put to the proof on a real model's activations, beside its rivals."""

from __future__ import annotations

import math
from typing import Any

import attrs
import torch
from torch import Tensor

from separata.claims import Evidence, Race, Trial, at_least, at_most, close_to, growth, race
from separata.errors import PackageMissing
from separata.placement import Placement
from separata_kit_llm import load, read_text

from . import benchmarks
from .compute import integer_matmul
from .config import METHODS
from .evaluation import EXACT, first_ids, model_tensors, perplexities
from .model import linear_layers
from .quantizer import fake_quantize, quantize
from .report import CrestFactorReport, qsnr, squared_error
from .theory import crossover

TOKENS = 512
GAUSSIAN = "Gaussian"
DOWN = "model.layers.0.mlp.down_proj"


def never_worse(trial: Trial) -> Evidence:
    """Squared error over that of the better of NVFP4 and NVINT4, the largest of all tensors."""
    rows: list[dict[str, Any]] = []
    for name, tensor in {**_activations(trial), **_synthetic(trial)}.items():
        errors = {method: squared_error(tensor, method) for method in ("mixfp4", "nvfp4", "nvint4")}
        rows.append(
            {
                "tensor": name,
                "ratio": errors["mixfp4"] / min(errors["nvfp4"], errors["nvint4"]),
                "nvfp4": errors["nvfp4"] / errors["mixfp4"],
                "nvint4": errors["nvint4"] / errors["mixfp4"],
            }
        )
    worst = sorted(rows, key=lambda row: -row["ratio"])
    return Evidence(
        worst[0]["ratio"],
        at_most(1.0),
        "of the better one's squared error",
        peers={method: max(row[method] for row in rows) for method in ("nvfp4", "nvint4")},
        table=worst[:12],
        note=f"{len(rows)} tensors; the table has a dozen with the smallest gain. Peers: largest error over ours.",
    )


def gains_over_nvfp4(trial: Trial) -> Evidence:
    """Gain over NVFP4 in dB: the mean over all layers' keys, over their values, on Gaussians; the least of them."""
    tensors = {**_activations(trial, inputs=()), GAUSSIAN: _synthetic(trial)[GAUSSIAN]}
    report = CrestFactorReport().fit(tensors)
    gains: dict[str, list[float]] = {"keys": [], "values": [], GAUSSIAN: []}
    for row in report.rows_:
        gains[row["tensor"].partition(".")[0]].append(row["mixfp4"] - row["nvfp4"])
    means = {kind: sum(found) / len(found) for kind, found in gains.items()}
    lowest = ", ".join(f"{kind} {min(found):.2f}" for kind, found in gains.items())
    means_text = ", ".join(f"{kind} {mean:.2f}" for kind, mean in means.items())
    wanted = ("keys.15", "values.29", GAUSSIAN)
    return Evidence(
        min(means.values()),
        at_least(0.5),
        "dB",
        table=[row for row in report.rows_ if row["tensor"] in wanted],
        note=f"Means: {means_text} dB. Smallest gain of a single layer: {lowest} dB.",
    )


def perplexity(trial: Trial) -> Evidence:
    """W4A4 perplexity over NVFP4's, everything rounded to nearest."""
    model, tokenizer = load(trial.input("smollm2"))
    rows = list(perplexities(model, tokenizer, read_text("python-topics"), METHODS))
    return _perplexity_evidence(rows)


def perplexity_full(trial: Trial) -> Evidence:
    """The same with Llama-3.1-8B on WikiText-2."""
    model, tokenizer = load(trial.input("llama-3-1-8b"), device=Placement().device(), dtype="bfloat16")
    text = read_text(trial.input("wikitext-2"))
    rows = list(perplexities(model, tokenizer, text, METHODS, tokens=10**9, window=2048))
    return _perplexity_evidence(rows)


def predicts_the_choice(trial: Trial) -> Evidence:
    """Share of blocks on the uniform grid against the share below the crossover: the largest difference."""
    synthetic = _synthetic(trial)
    tensors = {**_activations(trial, inputs=(DOWN,)), **synthetic}
    claimed = ("keys.15", "values.29", GAUSSIAN, "Laplace")
    shown = {name: tensors[name] for name in (*claimed, DOWN)}
    rows = [
        {"tensor": row["tensor"], "uniform": row["uniform"], "below": row["below"]}
        for row in CrestFactorReport(methods=("mixfp4",)).fit(shown).rows_
    ]
    apart = {row["tensor"]: abs(row["uniform"] - row["below"]) for row in rows}
    return Evidence(
        max(apart[name] for name in claimed),
        at_most(0.09),
        "share of blocks",
        table=rows,
        note=f"Inputs of the first down projection, far from Gaussian: {apart[DOWN]:.3f} apart.",
    )


def crossover_point(_trial: Trial) -> Evidence:
    """The crest factor at which the theory's two curves cross."""
    return Evidence(crossover(16), close_to(2.2243, 5e-5), "crest factor")


def crest_selects(trial: Trial) -> Evidence:
    """Share of Gaussian blocks for which the crest factor takes the grid that has the smaller error."""
    x = _synthetic(trial)[GAUSSIAN]
    by_error, by_crest = quantize(x), quantize(x, select="crest")
    return Evidence(
        float((by_error.uniform == by_crest.uniform).double().mean()),
        at_least(0.8),
        "share of blocks",
        note=f"QSNR: by error {qsnr(x, 'mixfp4'):.2f} dB, by crest factor {qsnr(x, 'mixfp4', select='crest'):.2f}, "
        f"NVFP4 {qsnr(x, 'nvfp4'):.2f}, NVINT4 {qsnr(x, 'nvint4'):.2f}.",
    )


def packs_in_four_and_a_half_bits(trial: Trial) -> Evidence:
    """Bits a number of every weight of the model: bytes of the tensors themselves."""
    model, _ = load(trial.input("smollm2"))
    weights = [layer.weight.detach() for _, layer in linear_layers(model)]
    numbers = sum(weight.numel() for weight in weights)

    def bits(method: str) -> float:
        return 8 * sum(quantize(weight, method=method).nbytes for weight in weights) / numbers

    # 32 bits of the tensor scale, over the smallest weight.
    allowed = 4.5 + 32 / min(weight.numel() for weight in weights)
    return Evidence(
        bits("mixfp4"), at_most(allowed), "bits a number", peers={"NVFP4": bits("nvfp4"), "bfloat16": 16.0}
    )


def multiplies_exactly(trial: Trial) -> Evidence:
    """E2M2 integers against the product of dequantised numbers in float64, in units in the last place."""
    model, _ = load(trial.input("smollm2"), layers=1)
    x = _activations(trial, inputs=("model.layers.0.mlp.gate_proj",))["model.layers.0.mlp.gate_proj"][:64]
    weight = dict(linear_layers(model))["model.layers.0.mlp.gate_proj"].weight.detach()[:256]
    one = torch.ones(())
    left, right = (attrs.evolve(quantize(tensor), global_scale=one) for tensor in (x, weight))
    expected = left.dequantize(torch.float64) @ right.dequantize(torch.float64).T
    found = integer_matmul(left, right)
    ulp = torch.nextafter(expected.abs(), torch.tensor(math.inf, dtype=torch.float64)) - expected.abs()
    return Evidence(
        float(((found - expected).abs() / ulp).max()),
        at_most(0),
        "ulp",
        note=f"{expected.numel()} dot products of {x.shape[1]} numbers, before the tensor scales.",
    )


def fake_quantisation_cost(trial: Trial) -> Evidence:
    """Time over that of NVFP4 at 2^22 numbers, both in torch on one process's threads."""
    x = benchmarks.gaussian(trial, 1 << 22)
    timing = race(Race(x.numel(), lambda: fake_quantize(x), lambda: fake_quantize(x, method="nvfp4")))
    peers = {"NVFP4": 1.0}
    try:
        torchao = benchmarks.torchao_nvfp4()
        there = race(Race(x.numel(), lambda: fake_quantize(x), lambda: torchao(x)))
        peers["torchao NVFP4, packed and unpacked"] = there.peer_s / timing.peer_s
    except PackageMissing:
        pass  # transformers loads it in every process once it is there, seconds and warnings: few have it
    return Evidence(
        timing.ours_s / timing.peer_s,
        at_most(2.5),
        "times NVFP4's",
        peers=peers,
        note=f"{timing.ours_s / x.numel() * 1e9:.1f} ns a number.",
    )


def grows_linearly(trial: Trial) -> Evidence:
    """Exponent of time against size."""
    timings = [race(entry) for entry in benchmarks.against_nvfp4(trial)]
    return Evidence(
        growth(benchmarks.SIZES, [timing.ours_s for timing in timings]),
        close_to(1.0, 0.1),
        "exponent",
        peers={"NVFP4": growth(benchmarks.SIZES, [timing.peer_s for timing in timings])},
    )


def _perplexity_evidence(rows: list[dict[str, Any]]) -> Evidence:
    scores = {row["method"]: row["perplexity"] for row in rows}
    peers = {name: score / scores["nvfp4"] for name, score in scores.items() if name != "mixfp4"}
    return Evidence(
        scores["mixfp4"] / scores["nvfp4"],
        at_most(1.0),
        "of NVFP4's perplexity",
        peers=peers,
        table=rows,
        note=f"Exact: {scores[EXACT]:.3f}. Perplexities are in the table.",
    )


def _activations(trial: Trial, inputs: tuple[str, ...] = ("*",)) -> dict[str, Tensor]:
    """Keys, values and inputs of layers on the first tokens of Python's help pages."""
    model, tokenizer = load(trial.input("smollm2"))
    return model_tensors(model, first_ids(tokenizer, read_text("python-topics"), TOKENS), inputs=inputs)


def _synthetic(trial: Trial) -> dict[str, Tensor]:
    generator = trial.generator()
    shape = (1024, 1024)
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    chi = torch.randn(3, *shape, generator=generator, dtype=torch.float64).square().mean(0).sqrt()
    laplace = -uniform.sign() * torch.log1p(-2 * uniform.abs())
    return {GAUSSIAN: normal.float(), "Laplace": laplace.float(), "Student t, 3": (normal / chi).float()}
