"""What the estimator must recover in limits where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from separata_tpg import truncated
from separata_tpg.policy_gradient import PAST, past_mean


@pytest.fixture
def data(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.normal(2, 1, (4, 300)), random.integers(0, 2, (4, 300))


def test_k_0_is_horvitz_thompson(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data
    found = truncated(outcomes, arms, 0.3, 0)
    expected = (arms * outcomes / 0.3 - (1 - arms) * outcomes / 0.7).mean(-1)
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


def test_swapping_arms_at_one_half_negates_the_estimate(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data
    for form in ("ht", "hajek"):
        one, other = (truncated(outcomes, a, 0.5, 4, form=form) for a in (arms, 1 - arms))
        np.testing.assert_allclose(one.value, -other.value, rtol=1e-10)
        np.testing.assert_allclose(one.std_error, other.std_error, rtol=1e-10)


def test_a_hajek_estimate_is_the_difference_of_two_means(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data[0][0], data[1][0]
    found = truncated(outcomes, arms, 0.5, 0, form="hajek").value
    assert found == pytest.approx(outcomes[arms == 1].mean() - outcomes[arms == 0].mean(), rel=1e-12)


def test_a_hajek_estimate_ignores_a_constant(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data
    one, other = (truncated(y, arms, 0.5, 3, form="hajek", edge="drop") for y in (outcomes, outcomes + 50))
    np.testing.assert_allclose(one.value, other.value, atol=1e-10)
    np.testing.assert_allclose(one.std_error, other.std_error, rtol=1e-9)


def test_with_baseline_a_constant_changes_only_the_warm_up(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data
    one, other = (truncated(y, arms, 0.5, 3, baseline="past") for y in (outcomes, outcomes + 7))
    np.testing.assert_allclose(one.influence[:, 4:], other.influence[:, 4:], atol=1e-11)


def test_the_baseline_sees_nothing_within_reach_of_a_decision(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes = data[0]
    changed = outcomes.copy()
    changed[:, 200:] += 100
    same = past_mean(outcomes, 5) == past_mean(changed, 5)
    assert same[:, :206].all()
    assert not same[:, 206].any()
    np.testing.assert_allclose(past_mean(outcomes, 5)[:, 250], outcomes[:, 245 - PAST : 245].mean(-1))


def test_dropping_the_edge_leaves_only_whole_windows(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcomes, arms = data
    padded, dropped = (truncated(outcomes, arms, 0.5, 6, edge=edge) for edge in ("pad", "drop"))
    np.testing.assert_array_equal(padded.influence[:, :-6], dropped.influence)
    np.testing.assert_allclose(dropped.value, dropped.influence.mean(-1))


def test_without_memory_the_variance_is_the_closed_form(random: np.random.Generator) -> None:
    outcomes, arms = random.normal(1, 2, (4000, 200)), random.integers(0, 2, (4000, 200))
    found = truncated(outcomes, arms, 0.5, 0)
    # w^2 = 4 and E y^2 = 1 + 4; the spread of a variance over 4000 runs is 2.2 %.
    assert 200 * found.value.var() == pytest.approx(20, rel=0.09)
    assert 200 * (found.std_error**2).mean() == pytest.approx(20, rel=0.09)


def test_without_memory_the_mean_does_not_depend_on_k(random: np.random.Generator) -> None:
    arms = random.integers(0, 2, (4000, 200))
    outcomes = random.normal(size=arms.shape) + 0.7 * arms
    for k in (0, 2, 8):
        value = truncated(outcomes, arms, 0.5, k).value
        assert abs(value.mean() - 0.7) < 4 * value.std() / 4000**0.5
