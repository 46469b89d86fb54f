"""What the claims measure: trainings on a noisy quadratic and on real text, with ECO and its rivals, kept once done."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from separata.claims import Trial
from separata_kit_llm import read_text, tiny

from . import peers, quadratic
from .config import TrainConfig
from .conversion import quantised
from .memory import memory_report
from .training import make_optimizer, prepare, run, train

TEXT = "python-topics"
RATES = (0.3, 0.1, 0.03, 0.01)
SEEDS = 3
CONFIG = TrainConfig()
MODEL: dict[str, Any] = {"hidden": 64, "layers": 2, "heads": 4}

QUADRATIC = {
    "master, to nearest": ("master", "nearest_even"),
    "master, stochastic": ("master", "stochastic"),
    "rounding alone, to nearest": ("none", "nearest_even"),
    "rounding alone, stochastic": ("none", "stochastic"),
    "ECO, to nearest": ("eco", "nearest_even"),
    "ECO, stochastic": ("eco", "stochastic"),
}
LANGUAGE: dict[str, dict[str, Any]] = {
    "master, to nearest": {"compensation": "master", "rounding": "rtn"},
    "rounding alone, to nearest": {"compensation": "none", "rounding": "rtn"},
    "rounding alone, stochastic": {"compensation": "none"},
    "ECO, stochastic": {},
}
ECO, MASTER, ALONE = "ECO, stochastic", "master, to nearest", "rounding alone, stochastic"
INT8, EIGHT_BIT = "torchao int8 weights, stochastic", "torchao AdamW8bit, bfloat16 weights, stochastic"


def quadratic_losses(trial: Trial) -> dict[str, list[float]]:
    """Final losses of every way at every learning rate."""

    def compute() -> dict[str, list[float]]:
        found = {
            name: [quadratic.final_loss(rate, kind, rounding, seed=trial.seed) for rate in RATES]  # type: ignore[arg-type]
            for name, (kind, rounding) in QUADRATIC.items()
        }
        found["rounding alone, to nearest, from random weights"] = [
            quadratic.final_loss(rate, "none", "nearest_even", seed=trial.seed, start="normal")
            for rate in RATES
        ]
        return found

    found: dict[str, list[float]] = kept(trial, "quadratic", compute)
    return found


def language_losses(trial: Trial, names: Iterable[str] = tuple(LANGUAGE)) -> dict[str, list[float]]:
    """Held-out losses of a tiny Llama by way and seed."""
    tokens = tiny.byte_tokens(read_text(TEXT))
    found: dict[str, list[float]] = {}
    for name in names:
        config = TrainConfig(**LANGUAGE[name])

        def compute(config: TrainConfig = config) -> list[float]:
            return [
                train(tiny.llama(seed=seed, **MODEL), tokens, config, seed=seed).held_out
                for seed in range(trial.seed, trial.seed + SEEDS)
            ]

        found[name] = kept(trial, "language", compute, {"way": name})
    return found


def torchao_losses(trial: Trial) -> dict[str, list[float]]:
    """The same for torchao's ways."""
    tokens = tiny.byte_tokens(read_text(TEXT))

    def compute() -> dict[str, list[float]]:
        losses: dict[str, list[float]] = {}
        for name, make, seeds in ((INT8, peers.int8_weights, SEEDS), (EIGHT_BIT, peers.adamw_8bit, 1)):
            losses[name] = []
            for seed in range(trial.seed, trial.seed + seeds):
                model = tiny.llama(seed=seed, **MODEL)
                with peers.eager(seed):
                    losses[name].append(run(model, make(model, CONFIG), tokens, CONFIG, seed=seed).held_out)
        return losses

    found: dict[str, list[float]] = kept(trial, "torchao", compute)
    return found


def kept(
    trial: Trial, name: str, compute: Callable[[], Any], settings: Mapping[str, Any] | None = None
) -> Any:
    """Figures that take long, computed once and kept as JSON.

    Args:
        trial: The run they belong to.
        name: What they are.
        compute: Returns them as plain JSON values.
        settings: Whatever else they depend on.
    """

    def build(folder: Path) -> None:
        (folder / "figures.json").write_text(json.dumps(compute()))

    return json.loads((trial.keep(name, build, settings=settings) / "figures.json").read_text())


def trained_weights(trial: Trial, quant: str, granularity: str, rounding: Any, compensation: Any) -> Tensor:
    """All quantised weights after a short training in float64, as one vector."""
    config = TrainConfig(
        quant=quant,  # type: ignore[arg-type]
        granularity=granularity,
        rounding=rounding,
        compensation=compensation,
        steps=12,
        batch=2,
        length=32,
        held_out=0.02,
    )
    # Rows of 96 and 256: all groups divide them.
    model = tiny.llama(seed=trial.seed, hidden=96, layers=1, heads=4).double()
    train(model, tiny.byte_tokens(read_text(TEXT))[:4000], config, seed=trial.seed)
    return torch.cat([weight.dequantize().flatten() for weight in quantised(model).values()])


def static_bytes(
    tokens: Tensor, config: TrainConfig, make: Callable[[Any, TrainConfig], Optimizer]
) -> dict[str, Any]:
    """Bytes after a step of a model that is nearly all linear layers; gradients are freed, as between steps."""
    model: Any = tiny.llama(seed=0, hidden=384, layers=2, heads=4, length=64)
    optimizer = make(model, config)
    with peers.eager(0):
        run(model, optimizer, tokens, config, seed=0)
    optimizer.zero_grad(set_to_none=True)
    gc.collect()
    report = memory_report(model, optimizer)
    return {**report, "parameters": sum(parameter.numel() for parameter in model.parameters())}


def eco_optimizer(model: Any, config: TrainConfig) -> Optimizer:
    """ECO's AdamW, on weights that are quantised in place."""
    prepare(model, config)
    return make_optimizer(model, config, 0)


def master_optimizer(model: Any, _: TrainConfig) -> Optimizer:
    """AdamW on float32 weights, with the copy in bfloat16 that mixed precision multiplies with."""
    optimizer: Any = AdamW(model.parameters())
    optimizer.copy = [parameter.detach().bfloat16() for parameter in model.parameters()]
    made: Optimizer = optimizer
    return made
