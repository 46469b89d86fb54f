from __future__ import annotations

import pytest

from separata_eco import quadratic


@pytest.fixture(scope="module")
def losses() -> dict[str, float]:
    """After a tenth of the steps, at one learning rate."""
    ways = {"eco": "stochastic", "master": "stochastic", "none": "nearest_even", "exact": "stochastic"}
    return {
        kind: quadratic.final_loss(0.03, kind, rounding, seed=0, steps=500, runs=4)
        for kind, rounding in ways.items()
    }


def test_exact_compensation_ends_where_master_weights_do(losses: dict[str, float]) -> None:
    # In float32 both drift apart by rounding; each draw that differs is one step of the grid.
    assert losses["exact"] == pytest.approx(losses["master"], rel=0.2)


def test_eco_is_near_and_rounding_alone_is_not(losses: dict[str, float]) -> None:
    assert losses["eco"] < 2 * losses["master"]
    assert losses["none"] > 10 * losses["master"]


def test_no_training_is_below_the_floor(losses: dict[str, float]) -> None:
    assert quadratic.floor(0, runs=4) < min(losses.values())
