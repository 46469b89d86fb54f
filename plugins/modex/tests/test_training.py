"""The loop keeps the best epoch and every class."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from separata_modex.training import train


def run(network: nn.Module, loss: Any, features: Tensor, labels: Tensor, **changed: Any) -> int:
    settings: dict[str, Any] = {
        "epochs": 5,
        "learning_rate": 0.01,
        "batch_size": 4,
        "validation_fraction": 0.25,
        "patience": 30,
        "generator": torch.Generator().manual_seed(0),
    }
    return train(network, loss, features, labels, **(settings | changed))


def cross_entropy(output: Tensor, labels: Tensor, epoch: int) -> Tensor:
    return F.cross_entropy(output, labels)


def test_the_best_epoch_is_kept_and_patience_ends_it() -> None:
    class Scalar(nn.Module):
        """Falls by the learning rate a step under the loss below."""

        def __init__(self) -> None:
            super().__init__()
            self.at = nn.Parameter(torch.tensor(0.0))

        def forward(self, rows: Tensor) -> Tensor:
            return self.at.expand(len(rows))

    steps = []

    def loss(output: Tensor, labels: Tensor, epoch: int) -> Tensor:
        # Trained down without end, while the held-out loss is least at -0.2.
        if torch.is_grad_enabled():
            steps.append(epoch)
            return output.mean()
        return (output.mean() + 0.2).abs()

    network = Scalar()
    best = run(
        network,
        loss,
        torch.zeros(8, 1),
        torch.zeros(8).long(),
        epochs=50,
        learning_rate=0.1,
        batch_size=8,
        patience=3,
    )
    assert best == 1
    assert float(network.at.detach()) == pytest.approx(-0.2, abs=1e-5)
    assert max(steps) == best + 3


def test_a_class_with_one_row_is_never_held_out() -> None:
    seen: set[int] = set()

    def loss(output: Tensor, labels: Tensor, epoch: int) -> Tensor:
        if torch.is_grad_enabled():
            seen.update(labels.tolist())
        return cross_entropy(output, labels, epoch)

    for seed in range(10):
        seen.clear()
        run(
            nn.Linear(2, 6),
            loss,
            torch.randn(10, 2),
            torch.tensor([0, 0, 0, 0, 0, 1, 2, 3, 4, 5]),
            epochs=1,
            validation_fraction=0.5,
            generator=torch.Generator().manual_seed(seed),
        )
        assert seen == set(range(6))


def test_it_trains_where_no_row_can_be_held_out() -> None:
    network = nn.Linear(2, 4)
    before = network.weight.detach().clone()
    run(network, cross_entropy, torch.randn(4, 2), torch.arange(4), validation_fraction=0.75)
    assert not torch.equal(network.weight, before)


def test_the_seed_decides() -> None:
    rows, labels = torch.randn(16, 2), torch.arange(16) % 2
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.load_state_dict(first.state_dict())
    for network in (first, second):
        run(network, cross_entropy, rows, labels)
    assert torch.equal(first.weight, second.weight)
