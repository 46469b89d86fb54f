"""Races: closed form against root finding, and the cost of deciding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq

from separata.claims import Race, Trial

from .closed_forms import theta0
from .config import EBPlusConfig
from .schedulers import EBPlus, MixedBatching
from .simulator import Simulator
from .timing import TimingModel
from .traces import Trace, draw_lengths

CONSTANTS: dict[str, Any] = {
    "alpha_prefill": 30e-3,
    "beta_prefill": 0.03e-3,
    "alpha_decode": 12e-3,
    "beta_decode": 0.02e-3,
}


def thresholds(trial: Trial) -> Iterator[Race]:
    """Thresholds of drawn rates."""
    for size in (16, 128, 1024):
        rates = np.random.default_rng(trial.seed).uniform(1e-4, 0.1, size)

        def roots(rates: np.ndarray = rates) -> list[float]:
            return [
                brentq(lambda t, c=c: t / (1 - t) + np.log1p(-t) - c, 1e-9, 1 - 1e-9) for c in 2.5 * rates
            ]

        yield Race(size, lambda rates=rates: theta0(rates, 30.0, 12.0), roots)  # type: ignore[misc]


def decide(trial: Trial) -> Iterator[Race]:
    """Traces of growing length."""
    timing, config = TimingModel.from_constants(**CONSTANTS), EBPlusConfig()
    for size in (500, 1000, 2000):
        generator = np.random.default_rng(trial.seed)
        outputs = draw_lengths("geometric", 256, size, generator)
        trace = Trace.saturated(draw_lengths("geometric", 512, size, generator), outputs)
        yield Race(
            size,
            lambda trace=trace: Simulator(timing, trace, EBPlus(timing, config)).run(),  # type: ignore[misc]
            lambda trace=trace: Simulator(timing, trace, MixedBatching(config)).run(),  # type: ignore[misc]
        )
