"""The trainer beyond what the conformance kit tries: the best step, dropout, mappings, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from separata_modex import MoDEXNetwork, MoDEXTrainer, TuneConfig, errors, modexify

CONFIG = TuneConfig(steps=12, batch=8, head_rate=0.02, backbone_rate=0.02, validation=0.2, evaluate_every=3)
TRUTH = torch.arange(80) % 3
POINTS = torch.randn(80, 4, generator=torch.Generator().manual_seed(0)) + 4 * nn.functional.one_hot(TRUTH, 4)
ROWS = TensorDataset(POINTS, TRUTH)


def network() -> MoDEXNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return modexify(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3)))


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_it_learns_and_keeps_the_best_step() -> None:
    made = network()
    report = MoDEXTrainer(attrs.evolve(CONFIG, steps=120)).fit(made, ROWS)
    assert (made(POINTS).law.mean.argmax(-1) == TRUTH).float().mean() > 0.9
    assert report.best_step % 3 == 0
    assert MoDEXTrainer(CONFIG)._score(made, ROWS, torch.arange(80)) < report.losses[0]
    assert not made.training


def test_a_stopped_run_goes_on_bit_for_bit_with_dropout_and_held_out_rows(tmp_path: Path) -> None:
    whole, stopped, resumed = network(), network(), network()
    told = MoDEXTrainer(CONFIG, seed=3).fit(whole, ROWS)
    MoDEXTrainer(CONFIG, seed=3, out=tmp_path).fit(stopped, ROWS, until=7)
    again = MoDEXTrainer(CONFIG, seed=3).fit(resumed, ROWS, resume=tmp_path)
    assert again.losses == told.losses[7:]
    assert (again.best_step, again.held_out) == (told.best_step, told.held_out)
    assert same(whole, resumed)
    assert not same(whole, stopped)


def test_the_backbone_can_be_left_as_it_is() -> None:
    made, before = network(), network()
    MoDEXTrainer(attrs.evolve(CONFIG, backbone_rate=0.0)).fit(made, ROWS)
    assert same(made.backbone, before.backbone)
    assert not same(made.head, before.head)


def test_mappings_and_soft_labels_are_taken() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(4, 3)

        def forward(self, points: Tensor) -> Tensor:
            out: Tensor = self.last(points)
            return out

    rows: Any = [
        ({"points": point}, label)
        for point, label in zip(POINTS, nn.functional.one_hot(TRUTH, 3).float(), strict=True)
    ]
    report = MoDEXTrainer(CONFIG).fit(modexify(Named()), rows)
    assert report.losses[-1] < report.losses[0]


def test_without_held_out_rows_the_last_step_is_kept() -> None:
    report = MoDEXTrainer(attrs.evolve(CONFIG, validation=0.0)).fit(network(), ROWS)
    assert report.best_step == 12
    assert report.held_out != report.held_out


def test_what_can_not_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidSetting, match="0 rows"):
        MoDEXTrainer(CONFIG).fit(network(), TensorDataset(POINTS[:0], TRUTH[:0]))
    with pytest.raises(errors.InvalidLabels):
        MoDEXTrainer(CONFIG).fit(network(), TensorDataset(POINTS, TRUTH + 5))
    MoDEXTrainer(CONFIG, out=tmp_path).fit(network(), ROWS)
    other = modexify(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 5)))
    with pytest.raises(errors.InvalidSetting, match="does not fit"):
        MoDEXTrainer(CONFIG).fit(other, ROWS, resume=tmp_path)


def test_a_batch_that_processes_can_not_share_is_refused() -> None:
    with pytest.raises(errors.InvalidSetting, match="3 processes"):
        next(MoDEXTrainer(CONFIG)._batches(ROWS, torch.arange(80), range(2), 0, 3))
