"""The paper's claims put to the proof: on a noisy quadratic, on language models and real text, and in bytes."""

from __future__ import annotations

from importlib.util import find_spec
from statistics import fmean
from typing import Any

import attrs

from separata.claims import Evidence, Race, Trial, at_least, at_most, close_to, growth, race
from separata_kit_llm import read_text, tiny

from . import peers
from .benchmarks import SIZES, adamw_step, eco_step
from .config import TrainConfig
from .experiments import (
    ALONE,
    CONFIG,
    ECO,
    EIGHT_BIT,
    INT8,
    MASTER,
    RATES,
    TEXT,
    eco_optimizer,
    language_losses,
    master_optimizer,
    quadratic_losses,
    static_bytes,
    torchao_losses,
    trained_weights,
)


def exact_is_master(trial: Trial) -> Evidence:
    """Twelve float64 steps of a language model in each format: largest difference of a weight from master weights'."""
    rows = []
    for quant, granularity in (("fp8_e4m3", "row"), ("fp8_e4m3", "tensor"), ("int4", "32"), ("mixfp4", "")):
        for rounding in ("sr", "rtn"):
            found = {
                kind: trained_weights(trial, quant, granularity, rounding, kind)
                for kind in ("exact", "eco", "master")
            }
            rows.append(
                {
                    "format": f"{quant} {granularity}".strip(),
                    "rounding": rounding,
                    "exact": float((found["exact"] - found["master"]).abs().max()),
                    "ECO": float((found["eco"] - found["master"]).abs().max()),
                }
            )
    return Evidence(
        max(row["exact"] for row in rows),
        at_most(1e-12),
        "largest difference of a weight",
        peers={"ECO": max(row["ECO"] for row in rows)},
        table=rows,
    )


def naive_grows(trial: Trial) -> Evidence:
    """Loss of rounding alone, to nearest, over that at ten times the learning rate: the least of four ratios."""
    sweep = quadratic_losses(trial)
    ratios = {
        f"{start}, {RATES[i + 2]} over {RATES[i]}": losses[i + 2] / losses[i]
        for start, losses in (
            ("from zero", sweep["rounding alone, to nearest"]),
            ("from random weights", sweep["rounding alone, to nearest, from random weights"]),
        )
        for i in (0, 1)
    }
    eco = sweep[ECO]
    return Evidence(
        min(ratios.values()),
        at_least(5),
        "times the loss",
        peers={"ECO": max(eco[2] / eco[0], eco[3] / eco[1])},
        table=[*_table(sweep), *({"run": name, "ratio": ratio} for name, ratio in ratios.items())],
    )


def near_master(trial: Trial) -> Evidence:
    """Loss of ECO over that of master weights, both rounded stochastically: the largest of four learning rates."""
    sweep = quadratic_losses(trial)
    return Evidence(
        _worst(sweep, ECO, "master, stochastic"),
        at_most(1.3),
        "of the loss of master weights",
        peers={"rounding alone": _worst(sweep, ALONE, "master, stochastic")},
        table=_table(sweep),
    )


def beats_rounding_alone(trial: Trial) -> Evidence:
    """Loss of ECO over that of rounding alone, both stochastic: the largest of four learning rates."""
    sweep = quadratic_losses(trial)
    return Evidence(
        _worst(sweep, ECO, ALONE),
        at_most(0.5),
        "of the loss of rounding alone",
        peers={"master weights": _worst(sweep, "master, stochastic", ALONE)},
        table=_table(sweep),
    )


def gap_share(trial: Trial) -> Evidence:
    """How far ECO's gap to master weights is above a quarter of that of stochastic rounding alone.

    The difference, because a share of a gap that is zero or negative would say nothing.
    """
    losses = language_losses(trial, (MASTER, ALONE, ECO))
    gaps = _gaps(losses)
    return Evidence(
        gaps[ECO] - gaps[ALONE] / 4,
        at_most(0.0),
        "nats above a quarter of the gap",
        peers={"gap of ECO": gaps[ECO], "gap of rounding alone": gaps[ALONE]},
        table=_rows(losses),
    )


def gap_nats(trial: Trial) -> Evidence:
    """Held-out loss behind master weights', as the mean over seeds."""
    losses = language_losses(trial)
    gaps = _gaps(losses)
    return Evidence(
        gaps[ECO],
        at_most(0.02),
        "nats a token",
        peers={name: gap for name, gap in gaps.items() if name not in (ECO, MASTER)},
        table=_rows(losses),
    )


def beats_int8(trial: Trial) -> Evidence:
    """Held-out loss of ECO on FP8 less that of torchao's int8 weights, as the mean over seeds."""
    losses = {**language_losses(trial, (MASTER, ECO)), **torchao_losses(trial)}
    rows = _rows(losses)
    means = {row["run"]: row["held out"] for row in rows}
    return Evidence(
        means[ECO] - means[INT8],
        at_most(0.0),
        "nats a token",
        peers={
            EIGHT_BIT: losses[EIGHT_BIT][0] - losses[INT8][0],
            "master weights": means[MASTER] - means[INT8],
        },
        table=rows,
        note=f"{EIGHT_BIT} is run with the first seed only: uncompiled, as here, it takes long.",
    )


def memory(_: Trial) -> Evidence:
    """Bytes of all tensors behind quantised weights after a step, over those of master weights in mixed precision."""
    tokens = tiny.byte_tokens(read_text(TEXT))[:4000]
    ways = [
        ("ECO FP8, momentum bfloat16", TrainConfig(momentum_dtype="bfloat16"), eco_optimizer),
        ("ECO FP8, momentum float32", CONFIG, eco_optimizer),
        ("ECO INT4, momentum bfloat16", TrainConfig(quant="int4", momentum_dtype="bfloat16"), eco_optimizer),
        ("master float32, copy bfloat16", CONFIG, master_optimizer),
    ]
    note = (
        "Weights of linear layers and their optimizer state. With both moments in float32 a parameter takes 9 of "
        "14 bytes, 0.64, so that the bound needs the smaller momentum."
    )
    if find_spec("torchao"):
        ways += [(INT8, CONFIG, peers.int8_weights), (EIGHT_BIT, CONFIG, peers.adamw_8bit)]
    else:
        note += " torchao, a peer, is not installed."
    held, rows = {}, []
    for name, config, make in ways:
        row = static_bytes(tokens, attrs.evolve(config, steps=1, batch=1, length=16), make)
        held[name] = row["total"] / row["parameters"]
        rows.append({"training": name, **row, "bytes a parameter": held[name]})
    reference = held["master float32, copy bfloat16"]
    ours, *others = held
    return Evidence(
        held[ours] / reference,
        at_most(0.62),
        "of the bytes of master weights",
        peers={name: held[name] / reference for name in others},
        table=rows,
        note=note,
    )


def step_cost(trial: Trial) -> Evidence:
    """Time of a step on ten million FP8 numbers over that of torch's AdamW on float32."""
    size = SIZES[-1]
    sides = {
        "stochastic": {},
        "to nearest": {"rounding": "nearest_even"},
        "master weights, stochastic": {"compensation": "master"},
    }
    found = {
        name: 1
        / race(
            Race(size, eco_step(size, trial.seed, **options), adamw_step(size, trial.seed)), rounds=3
        ).ratio
        for name, options in sides.items()
    }
    return Evidence(found.pop("stochastic"), at_most(1.35), "times the step of torch's AdamW", peers=found)


def linear_time(trial: Trial) -> Evidence:
    """The exponent with which a step's time grows from one to ten million numbers."""
    sizes = (1_000_000, 3_000_000, 10_000_000)
    timings = [
        race(Race(size, eco_step(size, trial.seed), adamw_step(size, trial.seed)), rounds=3) for size in sizes
    ]
    return Evidence(
        growth(sizes, [timing.ours_s for timing in timings]),
        close_to(1, 0.15),
        "exponent",
        peers={"torch's AdamW": growth(sizes, [timing.peer_s for timing in timings])},
    )


def _table(sweep: dict[str, list[float]]) -> list[dict[str, Any]]:
    return [
        {"run": name, **{f"lr {rate}": loss for rate, loss in zip(RATES, losses, strict=True)}}
        for name, losses in sweep.items()
    ]


def _worst(sweep: dict[str, list[float]], ours: str, peer: str) -> float:
    return max(one / other for one, other in zip(sweep[ours], sweep[peer], strict=True))


def _gaps(losses: dict[str, list[float]]) -> dict[str, float]:
    return {name: fmean(found) - fmean(losses[MASTER]) for name, found in losses.items()}


def _rows(losses: dict[str, list[float]]) -> list[dict[str, Any]]:
    return [
        {
            "run": name,
            "held out": fmean(found),
            "behind master": fmean(found) - fmean(losses[MASTER][: len(found)]),
            "seeds": len(found),
        }
        for name, found in losses.items()
    ]
