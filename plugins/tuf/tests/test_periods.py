"""Lengths of periods against their closed forms and against other ways to spend the same budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from separata_tuf.bounds import Problem, error_bound
from separata_tuf.errors import InvalidSetting
from separata_tuf.periods import equal_periods, growth, optimal_periods, periods_needed


@given(
    gamma=st.floats(0, 0.999),
    periods=st.integers(1, 200),
    minimum=st.integers(1, 50),
    extra=st.integers(0, 10**7),
)
def test_a_budget_is_spent_to_the_last_update(gamma: float, periods: int, minimum: int, extra: int) -> None:
    lengths = optimal_periods(gamma, periods * minimum + extra, periods, minimum=minimum)
    assert lengths.sum() == periods * minimum + extra
    # Rounding sums moves a length by less than one.
    assert (np.diff(lengths) >= -1).all()
    assert lengths.min() >= minimum - 1
    assert lengths.min() >= 1 or minimum == 1


def test_periods_grow_by_the_discount_to_the_power_of_two_thirds() -> None:
    lengths = optimal_periods(0.9, 10**9, 30)
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 0.9 ** (-2 / 3), rtol=1e-5)
    assert growth(0.9, 1) == pytest.approx(0.9**0.5)


def test_no_random_allocation_has_a_smaller_bound() -> None:
    problem = Problem(gamma=0.9)
    best = error_bound(problem, optimal_periods(0.9, 10**6, 25)).noise
    shares = np.random.default_rng(0).dirichlet(np.ones(25), 1000)
    assert min(error_bound(problem, np.maximum(10**6 * share, 1)).noise for share in shares) > best


@pytest.mark.parametrize("rate", [0.25, 0.5, 1.0])
def test_other_rates_agree_with_a_numerical_optimum(rate: float) -> None:
    discounts = 0.8 ** np.arange(5, -1, -1)

    def noise(logits: np.ndarray) -> float:
        shares = np.exp(logits) / np.exp(logits).sum()
        return float(discounts @ shares**-rate)

    found = minimize(noise, np.zeros(6), tol=1e-12).x
    shares = np.exp(found) / np.exp(found).sum()
    np.testing.assert_allclose(optimal_periods(0.8, 10**9, 6, rate=rate) / 1e9, shares, rtol=1e-3)


def test_without_discount_the_last_period_gets_all_but_the_least() -> None:
    assert optimal_periods(0.0, 100, 5).tolist() == [1, 1, 1, 1, 96]
    assert optimal_periods(0.0, 100, 5, minimum=20).tolist() == [20] * 5


def test_equal_periods_differ_by_one_at_most() -> None:
    lengths = equal_periods(1003, 10)
    assert lengths.sum() == 1003
    assert set(lengths.tolist()) == {100, 101}


def test_the_first_error_has_shrunk_after_the_periods_needed() -> None:
    count = periods_needed(0.9, 10, 0.01)
    assert 0.9**count * 10 <= 0.01 < 0.9 ** (count - 1) * 10
    assert periods_needed(0.5, 1, 2) == 1
    assert periods_needed(0.5, 8, 1) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: optimal_periods(1.0, 10, 2),
        lambda: optimal_periods(-0.1, 10, 2),
        lambda: optimal_periods(0.9, 10, 11),
        lambda: optimal_periods(0.9, 10, 0),
        lambda: optimal_periods(0.9, 10, 2, rate=-1),
        lambda: equal_periods(3, 4),
        lambda: periods_needed(0.9, 0, 1),
    ],
)
def test_settings_out_of_range_are_refused(call) -> None:
    with pytest.raises(InvalidSetting):
        call()
