"""What the field uses instead, where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from separata_tpg.comparators import burn_in_switchback, difference_in_means, lstd_difference, stationary_dq


def chain(random: np.random.Generator, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A still chain of two states whose arms act on the next state alone: effect 0.3 of being in state 1."""
    arms = random.integers(0, 2, steps)
    states = np.concatenate([[0], (random.random(steps) < 0.3 + 0.3 * arms).astype(int)])
    return states[:-1].astype(float), arms, np.eye(2)[states]


def test_a_difference_in_means_is_one(random: np.random.Generator) -> None:
    outcomes, arms = random.normal(size=400), random.integers(0, 2, 400)
    found = difference_in_means(outcomes, arms)
    assert found.value == pytest.approx(outcomes[arms == 1].mean() - outcomes[arms == 0].mean())
    assert found.std_error == pytest.approx(2 / 20, rel=0.25)


@pytest.mark.parametrize("estimate", [stationary_dq, lstd_difference])
def test_an_effect_on_the_next_state_is_found(estimate: object, random: np.random.Generator) -> None:
    outcomes, arms, states = chain(random, 40_000)
    assert abs(difference_in_means(outcomes, arms).value) < 0.02
    assert estimate(outcomes, arms, states) == pytest.approx(0.3, abs=0.03)  # type: ignore[operator]


def test_a_trace_leaves_the_solution(random: np.random.Generator) -> None:
    outcomes, arms, states = chain(random, 40_000)
    assert stationary_dq(outcomes, arms, states, trace=0.5) == pytest.approx(0.3, abs=0.03)


def test_a_burn_in_leaves_out_what_an_old_arm_did() -> None:
    arms = np.repeat(np.random.default_rng(0).integers(0, 2, 60), 5)
    outcomes = 3.0 * arms
    outcomes[::5] = 100
    assert burn_in_switchback(outcomes, arms, 5, 1).value == pytest.approx(3)
