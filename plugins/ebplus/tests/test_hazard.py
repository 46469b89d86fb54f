"""Hazards are found again from censored lengths; bad lengths are refused."""

from __future__ import annotations

import numpy as np
import pytest

from separata_ebplus import HazardEstimator
from separata_ebplus.errors import AllCensored, InvalidLengths


def test_censoring_is_accounted_for() -> None:
    lengths = np.random.default_rng(0).geometric(0.02, 20000)
    cut = np.minimum(lengths, 40)
    found = HazardEstimator().fit(cut, lengths > 40)
    assert found.p0_ == pytest.approx(0.02, rel=0.05)
    assert 1 / cut.mean() > 0.03  # what ignoring it would give


def test_a_rising_hazard_is_seen() -> None:
    lengths = np.ceil(np.random.default_rng(0).gamma(4.0, 25.0, 5000))
    found = HazardEstimator().fit(lengths)
    assert found.eta_ > 3 * found.eta_std_error_
    assert found.trend_p_ < 0.01


def test_a_falling_hazard_is_held_level_unless_allowed() -> None:
    generator = np.random.default_rng(0)
    lengths = np.concatenate([generator.geometric(0.1, 3000), generator.geometric(0.005, 3000)])
    assert HazardEstimator().fit(lengths).eta_ == 0
    assert HazardEstimator(allow_decreasing=True).fit(lengths).eta_ < 0


def test_all_censored_warns() -> None:
    with pytest.warns(AllCensored):
        found = HazardEstimator().fit([5, 6, 7], [True] * 3)
    assert found.p0_ == 1e-5


@pytest.mark.parametrize("lengths", [[], [0], [2.5], [float("nan")], [[1, 2]]])
def test_lengths_that_make_no_sense_are_refused(lengths: list[float]) -> None:
    with pytest.raises(InvalidLengths):
        HazardEstimator().fit(lengths)


def test_more_deaths_than_at_risk_are_refused() -> None:
    with pytest.raises(InvalidLengths):
        HazardEstimator().fit_counts([2.0], [1.0])
