"""The bound against its closed forms, plans that keep it, and the audit of an interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from separata_tuf.bounds import Problem, audit, error_bound, plan_budget, recommend
from separata_tuf.errors import InvalidSetting, TUFNotice
from separata_tuf.periods import optimal_periods


def test_equal_periods_have_the_geometric_series() -> None:
    problem = Problem(gamma=0.9, noise=2.0, coverage=0.25, span=5.0)
    bound = error_bound(problem, np.full(20, 400))
    assert bound.bias == pytest.approx(0.9**20 * 5)
    assert bound.noise == pytest.approx(2 / math.sqrt(0.25 * 400) * (1 - 0.9**20) / 0.1)


def test_growing_periods_reach_hoelders_equality() -> None:
    problem, base, count = Problem(gamma=0.9, noise=1.0), 0.9 ** (2 / 3), 30
    found = error_bound(problem, optimal_periods(0.9, 10**8, count)).noise
    assert found == pytest.approx(((1 - base**count) / (1 - base)) ** 1.5 / 1e4, rel=1e-5)


def test_defaults_are_the_largest_for_rewards_up_to_one() -> None:
    problem = Problem(gamma=0.75)
    assert (problem.noise, problem.span, problem.first_period) == (4, 4, 1)
    worst = Problem(gamma=0.75, pairs=8, coverage=0.125)
    assert worst.scale == pytest.approx(math.sqrt(2 * math.log(16)) * 4 / math.sqrt(0.125))
    assert worst.first_period == math.ceil(math.log(16) * 8)


def test_a_plan_is_better_than_equal_periods_and_keeps_the_floor() -> None:
    plan = plan_budget(Problem(gamma=0.95, coverage=0.01, pairs=100), 10**9)
    assert plan.budget == plan.equal_lengths.sum() == 10**9
    assert plan.bound.total < plan.equal_bound.total
    assert plan.lengths.min() >= math.log(200) * 100 - 1


def test_a_bound_that_says_nothing_is_told() -> None:
    with pytest.warns(TUFNotice, match="says no more than the span of 100"):
        plan_budget(Problem(gamma=0.99), 1000)


@pytest.mark.parametrize("error", [0.5, 0.05])
def test_a_recommended_budget_keeps_the_error_and_wastes_little(error: float) -> None:
    problem = Problem(gamma=0.9, coverage=0.1)
    plan = recommend(problem, error)
    assert plan.bound.total <= error
    assert plan.bound.total > 0.9 * error


def test_an_audit_says_what_an_interval_loses() -> None:
    problem = Problem(gamma=0.9)
    found = audit(problem, 1000, 10**6)
    assert found["periods"] == 1000
    assert found["lost"] == pytest.approx(found["bound"] / found["bound_of_growing"])
    assert found["lost"] > found["bound_of_best_interval"] / found["bound_of_growing"] > 1
    best = audit(problem, int(found["best_interval"]), 10**6)
    assert best["bound"] == pytest.approx(found["bound_of_best_interval"], rel=0.01)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Problem(gamma=1.0),
        lambda: Problem(gamma=0.9, coverage=0.0),
        lambda: Problem(gamma=0.9, coverage=1.5),
        lambda: Problem(gamma=0.9, noise=-1.0),
        lambda: error_bound(Problem(gamma=0.9), []),
        lambda: error_bound(Problem(gamma=0.9), [3, 0]),
        lambda: plan_budget(Problem(gamma=0.9, pairs=100, coverage=0.01), 100),
        lambda: audit(Problem(gamma=0.9), 100, 10),
    ],
)
def test_settings_out_of_range_are_refused(call) -> None:
    with pytest.raises(InvalidSetting):
        call()
