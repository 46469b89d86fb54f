from __future__ import annotations

import pytest
import torch

from separata_eco import QuantizedParameter, quadratic, quantizer


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


def test_no_training_is_below_the_optima_rounded_to_nearest(losses: dict[str, float]) -> None:
    optimum = torch.randn(4, quadratic.DIMENSIONS, generator=torch.Generator().manual_seed(0))
    rounded = QuantizedParameter.from_dense(optimum, quantizer("fp8_e4m3", "row")).dequantize()
    floor = (torch.linspace(0.1, 1, quadratic.DIMENSIONS) * (rounded - optimum) ** 2).sum(-1).mean() / 2
    assert floor < min(losses.values())
