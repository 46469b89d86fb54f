from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from separata_oea import LatencyLine, fit_latency
from separata_oea.errors import InvalidSetting, TooFewSamples

HITS = [4, 9, 12, 20, 31, 40]


def noisy() -> np.ndarray:
    return 0.01 + 0.002 * np.array(HITS) + 1e-3 * np.random.default_rng(0).normal(size=len(HITS))


def test_it_is_scipys_line() -> None:
    found, peer = fit_latency(HITS, noisy()), stats.linregress(HITS, noisy())
    assert found.seconds_per_expert.value == pytest.approx(peer.slope)
    assert found.seconds_per_expert.std_error == pytest.approx(peer.stderr)
    assert found.rest.value == pytest.approx(peer.intercept)
    assert found.rest.std_error == pytest.approx(peer.intercept_stderr)
    assert found.r2 == pytest.approx(peer.rvalue**2)


def test_assignments_take_the_place_of_the_constant() -> None:
    hits, assignments = np.array(HITS), np.array([16, 64, 32, 128, 64, 256])
    found = fit_latency(hits, 0.002 * hits + 1e-4 * assignments, assignments)
    assert found.seconds_per_expert.value == pytest.approx(0.002)
    assert found.rest.value == pytest.approx(1e-4)
    assert found.experts(0.002 * 7 + 1e-4 * 64, 64) == pytest.approx(7)


def test_the_interval_covers_the_slope_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        low, high = fit_latency(HITS, 0.002 * np.array(HITS) + generator.normal(size=6) * 1e-3).interval(0.9)
        covered += low <= 0.002 <= high
    # Three standard errors of a share of 0.9 among 400.
    assert abs(covered / 400 - 0.9) < 0.045


@pytest.mark.parametrize(
    ("hits", "seconds", "error"),
    [
        ([1, 2], [1, 2], TooFewSamples),
        ([3, 3, 3], [1, 2, 3], TooFewSamples),
        ([1, 2, 3], [1, 2], InvalidSetting),
        ([1, 2, 3], [1, 2, math.nan], InvalidSetting),
    ],
)
def test_measurements_that_make_no_line_are_refused(hits: Any, seconds: Any, error: Any) -> None:
    with pytest.raises(error):
        fit_latency(hits, seconds)


def test_a_level_is_within_zero_and_one() -> None:
    with pytest.raises(InvalidSetting, match="level"):
        fit_latency(HITS, noisy()).interval(1.0)


def test_the_running_line_is_the_fitted_one() -> None:
    line = LatencyLine()
    hits = [*HITS, 50, 55, 60]
    seconds = [0.01 + 0.002 * hit + 1e-4 * math.sin(hit) for hit in hits]
    for hit, second in zip(hits, seconds, strict=True):
        line.observe(torch.tensor(hit), second)
    assert float(line.target(0.05)) == pytest.approx(fit_latency(hits, seconds).experts(0.05))


@pytest.mark.parametrize("slope", [0.0, -0.001])
def test_a_line_that_does_not_rise_says_nothing(slope: float) -> None:
    line = LatencyLine()
    for hit in range(20, 40):
        line.observe(torch.tensor(hit), 0.1 + slope * hit)
    assert float(line.target(0.01)) == math.inf


def test_a_clock_that_runs_backwards_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="monotonic"):
        LatencyLine().observe(torch.tensor(3), -1.0)
