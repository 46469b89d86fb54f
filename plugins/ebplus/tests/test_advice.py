"""Advice follows the load, the hazard and the budget, and refuses what can't run."""

from __future__ import annotations

import numpy as np
import pytest

from separata_ebplus import EBPlusConfig, TimingModel, Trace, advise
from separata_ebplus.closed_forms import prefill_iterations
from separata_ebplus.errors import CapacityTooSmall
from separata_ebplus.traces import draw_lengths

KNOWN = {"alpha_prefill": 30e-3, "beta_prefill": 3e-5, "alpha_decode": 12e-3, "beta_decode": 2e-5}
TIMING = TimingModel.from_constants(**KNOWN)
GENERATOR = np.random.default_rng(0)
TRACE = Trace.saturated(*(draw_lengths("geometric", mean, 4000, GENERATOR) for mean in (512, 256)))


def test_without_interference_the_advice_is_mixed_at_every_load() -> None:
    assert {row["mode"] for row in advise(TIMING, TRACE).margins} == {"MB"}


def test_with_interference_light_load_is_mixed_and_heavy_exclusive() -> None:
    costly = TimingModel.from_constants(**KNOWN, mixed={0.0: 3e-5, 0.5: 9e-5, 1.0: 2e-5})
    modes = [row["mode"] for row in advise(costly, TRACE).margins]
    assert (modes[0], modes[-1]) == ("MB", "EB")
    assert modes == sorted(modes, reverse=True)


def test_a_rising_hazard_raises_the_threshold() -> None:
    assert advise(TIMING, TRACE, hazard_slope=1e-6).theta > advise(TIMING, TRACE).theta


def test_capacity_bounds_the_slots_and_too_little_is_refused() -> None:
    assert advise(TIMING, TRACE, EBPlusConfig(capacity=20_000)).slots < 256
    with pytest.raises(CapacityTooSmall):
        advise(TIMING, TRACE, EBPlusConfig(capacity=300))


def test_phases_beyond_the_budget_take_several_iterations() -> None:
    assert prefill_iterations(4, 100.0, 8192) == 1
    assert prefill_iterations(32, 1024.0, 8192) == 4.5
    wide, narrow = (advise(TIMING, TRACE, EBPlusConfig(token_budget=n)) for n in (10**6, 2048))
    assert narrow.exclusive_rps < wide.exclusive_rps
