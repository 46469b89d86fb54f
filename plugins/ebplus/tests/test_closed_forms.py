"""The closed forms keep their limits, and agree with numerical optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separata_ebplus import crossover, delta_theta, exclusive_seconds, safe_batch, theta0
from separata_ebplus.closed_forms import footprint
from separata_ebplus.errors import InvalidSetting
from separata_ebplus.references import fluid_optimum

times = st.floats(1e-3, 1e3)
rates = st.floats(1e-5, 0.5)


@given(rates, times, times)
def test_theta0_solves_its_equation(rate: float, prefill: float, decode: float) -> None:
    theta, cost = theta0(rate, prefill, decode), rate * prefill / decode
    z = -np.log1p(-theta)
    if 1e-4 < cost < 20:  # elsewhere the two terms of the check itself cancel or overflow
        assert np.expm1(z) - z == pytest.approx(cost, rel=1e-6)
    assert 0 < theta <= 1


@given(rates, times, times, st.floats(1.01, 3))
def test_theta0_rises_with_prefill_and_falls_with_decode(
    rate: float, prefill: float, decode: float, factor: float
) -> None:
    assert theta0(rate, prefill * factor, decode) >= theta0(rate, prefill, decode)
    assert theta0(rate, prefill, decode * factor) <= theta0(rate, prefill, decode)


@given(rates, times, times, st.sampled_from([1e-3, 1e3]))
def test_theta0_has_no_unit_of_time(rate: float, prefill: float, decode: float, unit: float) -> None:
    assert theta0(rate, prefill * unit, decode * unit) == pytest.approx(
        theta0(rate, prefill, decode), rel=1e-10
    )


def test_theta0_limits() -> None:
    assert theta0(1e-10, 1.0, 1.0) == pytest.approx(np.sqrt(2e-10), rel=1e-4)
    assert theta0(1.0, 1e6, 1.0) == pytest.approx(1, abs=1e-5)


def test_theta0_minimises_the_time_a_request() -> None:
    theta = theta0(1 / 256, 30.0, 12.0)
    grid = np.linspace(0.01, 0.9, 2001)
    costs = exclusive_seconds(grid, 64, 512, 256, 30.0, 0.03, 12.0, 0.02)
    assert abs(grid[costs.argmin()] - theta) < 1e-3


def test_delta_theta_is_the_derivative_of_the_optimum() -> None:
    constants = (30.0, 12.0, 0.02, 64.0)
    moved = fluid_optimum(1 / 256, 1e-8, *constants) - fluid_optimum(1 / 256, 0.0, *constants)
    assert delta_theta(1 / 256, 1e-8, *constants) == pytest.approx(moved, rel=2e-3)
    assert delta_theta(1 / 256, 0.0, *constants) == 0


def test_without_interference_and_fixed_gain_mixed_wins() -> None:
    weighted = (0.03 * 512 + 0.02 * 256) / 768
    assert crossover(0.13, 64, 512, 256, 30.0, 0.03, 12.0, 0.02, 12.0, weighted) < 0


def test_safe_batch_keeps_the_overflow_below_its_probability() -> None:
    generator = np.random.default_rng(0)
    prompts, outputs = generator.geometric(1 / 400, 4000), generator.geometric(1 / 200, 4000)
    mean, std = footprint(prompts, outputs)
    slots = int(safe_batch(50_000, mean, std, 0.05))
    picks = generator.choice(4000, (4000, slots), p=outputs / outputs.sum())
    ages = np.ceil(generator.random(picks.shape) * outputs[picks])
    share = ((prompts[picks] + ages).sum(1) > 50_000).mean()
    assert share == pytest.approx(0.05, abs=0.02)  # six standard errors, and the skew the normal leaves out


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_make_no_sense_are_refused(bad: float) -> None:
    for arguments in ((bad, 1.0, 1.0), (0.1, bad, 1.0), (0.1, 1.0, bad)):
        with pytest.raises(InvalidSetting):
            theta0(*arguments)
