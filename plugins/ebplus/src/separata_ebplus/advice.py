"""What to run: the mode, the threshold and the safe concurrency for an engine and its requests."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from .closed_forms import (
    crossover,
    exclusive_seconds,
    footprint,
    mixed_seconds,
    prefill_iterations,
    safe_batch,
    threshold,
)
from .config import EBPlusConfig
from .errors import CapacityTooSmall
from .timing import TimingModel
from .traces import Trace


@attrs.frozen(kw_only=True)
class Advice:
    """The policy for saturated traffic, and how it changes with the load.

    Args:
        mode: ``EB`` or ``MB``.
        theta: The threshold of exclusive batching.
        k: The free slots that start a prefill phase.
        slots: The concurrency advised: the configured slots, or fewer if the cache demands it.
        exclusive_rps: Requests a second under exclusive batching.
        mixed_rps: Requests a second under mixed batching.
        margins: One row an occupancy: the time a token by which exclusive batching wins, and the mode.
    """

    mode: str
    theta: float
    k: int
    slots: int
    exclusive_rps: float
    mixed_rps: float
    margins: list[dict[str, Any]]


def advise(
    timing: TimingModel, trace: Trace, config: EBPlusConfig | None = None, *, hazard_slope: float = 0.0
) -> Advice:
    """Advise on a policy by the closed forms.

    Args:
        timing: The engine's step times.
        trace: Requests whose lengths are typical; arrivals are not used.
        config: Slots, capacity, overflow and delta.
        hazard_slope: Growth of the completion rate within a decode phase, in one iteration.

    Raises:
        CapacityTooSmall: If not even one request is safe.
    """
    config = config or EBPlusConfig()
    prompt, output = float(trace.prompt_tokens.mean()), float(trace.output_tokens.mean())
    slots = config.slots
    if math.isfinite(config.capacity):
        most = safe_batch(
            config.capacity, *footprint(trace.prompt_tokens, trace.output_tokens), config.overflow
        )
        if most < 1:
            raise CapacityTooSmall(
                f"a capacity of {config.capacity:g} tokens is safe for {most:.2f} requests",
                "give more capacity",
            )
        slots = min(slots, int(most))
    theta, k = threshold(
        1 / output, hazard_slope, timing.alpha_prefill_, timing.alpha_decode_, timing.beta_decode_, slots
    )
    phase = timing.alpha_prefill_ * prefill_iterations(k, prompt, config.token_budget)
    lines = (phase, timing.beta_prefill_, timing.alpha_decode_, timing.beta_decode_)

    def mixed(occupancy: int) -> tuple[float, float]:
        return timing.alpha_mixed_, timing.effective_beta_mixed(occupancy, trace.prompt_tokens, output)

    margins: list[dict[str, Any]] = []
    for occupancy in sorted({2**power for power in range(int(np.log2(slots)) + 1)} | {slots}):
        gain = float(crossover(theta, occupancy, prompt, output, *lines, *mixed(occupancy)))
        margins.append(
            {
                "occupancy": occupancy,
                "EB wins by us/token": 1e6 * gain,
                "mode": "EB" if gain > config.delta else "MB",
            }
        )
    return Advice(
        mode=margins[-1]["mode"],
        theta=theta,
        k=k,
        slots=slots,
        exclusive_rps=1 / float(exclusive_seconds(k / slots, slots, prompt, output, *lines)),
        mixed_rps=1 / float(mixed_seconds(slots, prompt, output, *mixed(slots))),
        margins=margins,
    )
