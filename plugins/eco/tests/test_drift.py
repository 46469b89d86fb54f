from __future__ import annotations

import pytest
import torch
from torch import nn

from separata_eco import ErrorDrift
from separata_eco.errors import InvalidSetting


def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (model(x) - 1).square().mean()


def fitted(lr: float, rounding: str = "nearest_even") -> ErrorDrift:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 8))
    batches = [torch.randn(16, 64, generator=torch.Generator().manual_seed(i)) for i in range(6)]
    return ErrorDrift(model, loss, lr=lr, rounding=rounding, compensation="none").fit(batches)


def test_one_row_a_weight() -> None:
    assert [row["weight"] for row in fitted(1e-3).rows_] == ["0.weight", "1.weight"]


def test_steps_below_the_grid_leave_errors_alike() -> None:
    """With rounding to nearest a weight that stays has lost what the step was, as at the step before."""
    small, large = fitted(1e-5).cosine_, fitted(0.5).cosine_
    assert small > 0.8
    assert abs(large) < 0.2


def test_the_model_is_left_alone() -> None:
    model = nn.Linear(16, 4)
    before = model.weight.clone()
    ErrorDrift(model, loss).fit([torch.randn(4, 16) for _ in range(3)])
    assert torch.equal(model.weight, before)


def test_two_batches_are_too_few() -> None:
    with pytest.raises(InvalidSetting):
        ErrorDrift(nn.Linear(4, 4), loss).fit([torch.ones(1, 4)] * 2)


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="momentum"):
        ErrorDrift(nn.Linear(4, 4)).set_params(momentum=1)
