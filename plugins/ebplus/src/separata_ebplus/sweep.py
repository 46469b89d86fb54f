"""Runs of several schedulers on one trace, by name."""

from __future__ import annotations

import math
import re

from .closed_forms import threshold
from .config import EBPlusConfig
from .errors import InvalidSetting
from .schedulers import EBPlus, ExclusiveBatching, MixedBatching
from .simulator import BatchScheduler, Simulator
from .timing import TimingModel
from .traces import Trace


def scheduler(name: str, timing: TimingModel, config: EBPlusConfig) -> BatchScheduler:
    """A scheduler by name: ``mb``, ``eb1``, ``eb32`` and so on, ``eb`` (threshold learned) or ``ebplus``."""
    if name == "mb":
        return MixedBatching(config)
    if name in ("eb", "ebplus"):
        return EBPlus(timing, config, adaptive=name == "ebplus")
    if found := re.fullmatch(r"eb(\d+)", name):
        return ExclusiveBatching(int(found[1]), config)
    raise InvalidSetting(f"there is no scheduler {name!r}", "one of mb, eb1 (or another k), eb, ebplus")


def sweep(timing: TimingModel, trace: Trace, config: EBPlusConfig) -> tuple[dict[int, float], float, int]:
    """Requests a second of each k from a grid on saturated traffic, of mixed batching, and the advised k."""
    full = Trace.saturated(trace.prompt_tokens, trace.output_tokens)
    _, best = threshold(
        1 / float(trace.output_tokens.mean()),
        0.0,
        timing.alpha_prefill_,
        timing.alpha_decode_,
        timing.beta_decode_,
        config.slots,
    )
    grid = {round(2 ** (power / 2)) for power in range(2 * int(math.log2(config.slots)) + 1)} | {best}
    rates = {
        k: Simulator(timing, full, ExclusiveBatching(k, config)).run().steady_rate() for k in sorted(grid)
    }
    mixed = Simulator(timing, full, MixedBatching(config)).run().steady_rate()
    return rates, mixed, best
