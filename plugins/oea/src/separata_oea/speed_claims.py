"""The paper's claims on time, on experts large enough that reading them from memory is most of the work."""

from __future__ import annotations

from typing import Any

import torch

from separata.claims import Evidence, Race, Trial, at_least, at_most, race
from separata_kit_llm import tiny

from .config import OEAConfig
from .evaluation import piggybacked, pruned, rows_of
from .example_model import texts
from .latency import fit_latency
from .patching import patch_moe
from .timing import decoding, expert_times, prefilled

BATCH = 16
ROUNDS = 8  # of a race; the best of few would be the load of the machine
LARGE = {"hidden": 1024, "layers": 1, "heads": 16, "experts": 64, "expert_hidden": 2048}


def decode_time(trial: Trial) -> Evidence:
    """Wall time of a decode step with k0 = k/2 over that of the plain model, 64 experts of 25 MB, sixteen rows."""
    model = tiny.qwen3_moe(seed=trial.seed, active=4, **LARGE)
    ids = rows_of(texts()[1], BATCH, 36)
    cache, steps = prefilled(model, ids[:, :32]), ids[:, 32:]
    table = []
    for path, k, rounds in (("eager", 4, 2 * ROUNDS), ("grouped_mm", 4, 3), ("eager", 8, 3)):
        model.set_experts_implementation(path)
        model.model.layers[0].mlp.gate.top_k = k
        plain = decoding(model, cache, steps, None)
        ours = decoding(model, cache, steps, piggybacked(k // 2))
        timing = race(Race(k, ours, plain), rounds=rounds)
        activation: Any = ours()
        found = activation.summary()
        table.append(
            {
                "experts_run": path,
                "k": k,
                "plain_experts": found["plain_experts_hit"],
                "experts": found["experts_hit"],
                "plain_ms": 1e3 * timing.peer_s / steps.shape[1],
                "ms": 1e3 * timing.ours_s / steps.shape[1],
                "ratio": 1 / timing.ratio,
            }
        )
    model.set_experts_implementation("eager")
    model.model.layers[0].mlp.gate.top_k = 4
    rival = race(
        Race(4, decoding(model, cache, steps, pruned(2)), decoding(model, cache, steps, None)), rounds=3
    )
    return Evidence(
        table[0]["ratio"],
        at_most(0.85),
        "of the plain step",
        peers={"top-k0": 1 / rival.ratio},
        table=table,
        note="k = 4, k0 = 2, the loop over the experts that are hit; other settings stand in the table",
    )


def time_follows_experts(trial: Trial) -> Evidence:
    """R² of the line of a layer's time against its distinct experts, at the same number of assignments."""
    model = tiny.qwen3_moe(seed=trial.seed, active=4, **LARGE)
    model.set_experts_implementation("eager")
    sizes = [4, 8, 16, 24, 32, 40, 48, 56, 64]
    experts = model.model.layers[0].mlp.experts
    seconds = expert_times(experts, sizes, tokens=BATCH, k=4, hidden=LARGE["hidden"], rounds=ROUNDS)
    fit = fit_latency(sizes, seconds)
    low, high = fit.interval()
    return Evidence(
        fit.r2,
        at_least(0.95),
        "R²",
        table=[{"experts": size, "ms": 1e3 * one} for size, one in zip(sizes, seconds, strict=True)],
        note=f"{1e3 * fit.seconds_per_expert.value:.2f} ms an expert (95 %: {1e3 * low:.2f} to {1e3 * high:.2f})",
    )


def routing_cheap(trial: Trial) -> Evidence:
    """Time of the routing over that of the whole layer it routes, sixteen rows, 64 experts of 25 MB."""
    model = tiny.qwen3_moe(seed=trial.seed, active=4, **LARGE)
    block = model.model.layers[0].mlp
    states = torch.randn(BATCH, 1, LARGE["hidden"], generator=trial.generator())

    with torch.no_grad(), patch_moe(block, OEAConfig(k0=2)) as activation:

        def routed() -> None:
            with activation.step():
                block.gate(states)

        timing = race(Race(BATCH, routed, lambda: block(states)))
    return Evidence(1 / timing.ratio, at_most(0.05), "of the layer")
