"""Claims that need an accelerator: a Llama on FP8 against master weights, and a fine-tune on INT4 weights."""

from __future__ import annotations

from typing import Any

import torch

from separata.claims import Evidence, Trial, at_least, at_most
from separata.placement import Placement
from separata_kit_llm import load, read_text, tiny

from .config import TrainConfig
from .experiments import kept
from .training import train

RUNS = {"ECO": "eco", "master weights": "master", "rounding alone": "none"}


def pretrain(trial: Trial) -> Evidence:
    """Held-out loss of ECO less that of master weights, after 2000 steps of 32 times 512 bytes."""
    found = _pretrained(trial)
    losses = {name: run["held_out"] for name, run in found.items()}
    return Evidence(
        losses["ECO"] - losses["master weights"],
        at_most(0.01),
        "nats a token",
        peers={"rounding alone": losses["rounding alone"] - losses["master weights"]},
        table=[{"run": name, **run} for name, run in found.items()],
    )


def peak_memory(trial: Trial) -> Evidence:
    """The share of the GPU's peak memory that ECO saves in the same training."""
    found = _pretrained(trial)
    peaks = {name: run["peak_bytes"] for name, run in found.items()}
    return Evidence(
        1 - peaks["ECO"] / peaks["master weights"],
        at_least(0.15),
        "share of the peak",
        peers={"rounding alone": 1 - peaks["rounding alone"] / peaks["master weights"]},
        table=[{"run": name, **run} for name, run in found.items()],
        note="Both runs have activations and gradients, which ECO leaves as they are.",
    )


def finetune(trial: Trial) -> Evidence:
    """Held-out loss of ECO less that of master weights, after 300 steps on INT4 weights with frozen scales."""
    text = read_text(trial.input("shakespeare"))
    losses = {}
    for name, kind in RUNS.items():
        model, tokenizer = load(trial.input("smollm2"), device=Placement().device())
        encoded: Any = tokenizer(text[:1_000_000], return_tensors="pt", verbose=False)
        config = TrainConfig(
            quant="int4",
            granularity="64",
            scale="frozen",
            compensation=kind,  # type: ignore[arg-type]
            lr=1e-5,
            steps=300,
            length=256,
        )
        losses[name] = train(model, encoded.input_ids[0], config, seed=trial.seed).held_out
    return Evidence(
        losses["ECO"] - losses["master weights"],
        at_most(0.02),
        "nats a token",
        peers={"rounding alone": losses["rounding alone"] - losses["master weights"]},
    )


def _pretrained(trial: Trial) -> dict[str, dict[str, float]]:
    tokens = tiny.byte_tokens(read_text(trial.input("pretraining-text")))

    def compute() -> dict[str, dict[str, float]]:
        found = {}
        for name, kind in RUNS.items():
            model = tiny.llama(seed=trial.seed, hidden=768, layers=16, heads=12).to(Placement().device())  # type: ignore[arg-type]
            torch.cuda.reset_peak_memory_stats()
            config = TrainConfig(
                compensation=kind,  # type: ignore[arg-type]
                momentum_dtype="float32",
                lr=6e-4,
                steps=2000,
                batch=32,
                length=512,
                held_out=0.01,
            )
            held_out = train(model, tokens, config, seed=trial.seed).held_out
            found[name] = {"held_out": held_out, "peak_bytes": float(torch.cuda.max_memory_allocated())}
        return found

    runs: dict[str, dict[str, float]] = kept(trial, "pretrained", compute)
    return runs
