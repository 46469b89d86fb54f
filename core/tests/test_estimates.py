"""Estimates: a value with its uncertainty."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separata import Estimate

values = st.floats(-1e6, 1e6)
errors = st.floats(1e-3, 1e3)


def test_the_interval_is_that_of_the_normal_law() -> None:
    # 1.959963984540054 is the 0.975 quantile of the standard normal law.
    assert Estimate(2.0, 0.5).interval(0.95) == pytest.approx((2 - 0.979981992270027, 2 + 0.979981992270027))


@given(values, errors, st.floats(0.01, 0.98))
def test_more_confidence_takes_a_wider_interval(value: float, error: float, level: float) -> None:
    narrow, wide = Estimate(value, error).interval(level), Estimate(value, error).interval(level + 0.01)
    assert wide[0] < narrow[0] < value < narrow[1] < wide[1]


def test_certainty_has_no_width() -> None:
    assert Estimate(1.0, 0.0).interval() == (1.0, 1.0)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan])
def test_a_level_that_is_no_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Estimate(0.0, 1.0).interval(level)


def test_a_negative_error_is_refused() -> None:
    with pytest.raises(ValueError, match="std_error"):
        Estimate(0.0, -1.0)
