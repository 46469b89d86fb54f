from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

from separata_eco import train
from separata_eco.config import TrainConfig
from separata_eco.training import make_optimizer, prepare, rate
from separata_kit_llm import tiny
from separata_kit_llm.errors import TextTooShort

SMALL = TrainConfig(steps=8, batch=2, length=16, checkpoint_every=4)


@pytest.fixture
def tokens() -> torch.Tensor:
    return tiny.byte_tokens("The quick brown fox jumps over the lazy dog and runs away. " * 40)


def model() -> Any:
    return tiny.llama(seed=0, hidden=32, layers=1, heads=2)


def test_loss_falls(tokens: torch.Tensor) -> None:
    found = train(model(), tokens, attrs.evolve(SMALL, steps=40, lr=1e-2))
    assert found.held_out < found.losses[0] - 1
    assert found.skipped == 0


def test_it_resumes_bit_for_bit(tokens: torch.Tensor, tmp_path: Path) -> None:
    config = attrs.evolve(SMALL, momentum_dtype="bfloat16")
    whole = train(model(), tokens, config, seed=3, out=tmp_path / "whole")
    stopped = model()

    class Stop(Exception):
        pass

    count = 0

    def interrupt(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 6:
            raise Stop

    stopped.register_forward_pre_hook(interrupt)
    with pytest.raises(Stop):
        train(stopped, tokens, config, seed=3, out=tmp_path / "stopped")
    resumed = train(model(), tokens, config, seed=3, out=tmp_path / "stopped", resume=True)
    assert len(resumed.losses) == 4
    assert resumed.losses == whole.losses[4:]
    assert resumed.held_out == whole.held_out


def test_passes_are_accumulated(tokens: torch.Tensor) -> None:
    """Two passes of one window and one pass of two windows give the same gradients, since windows are as long."""
    once = train(model(), tokens, attrs.evolve(SMALL, steps=3, batch=2))
    twice = train(model(), tokens, attrs.evolve(SMALL, steps=3, batch=1, accumulate=2))
    # The same windows are drawn; at the first step nothing but the order of sums differs.
    assert once.losses[0] == pytest.approx(twice.losses[0], abs=1e-5)
    assert once.losses[-1] == pytest.approx(twice.losses[-1], abs=0.05)


def test_the_rate_starts_at_zero_and_ends_above() -> None:
    config = TrainConfig(steps=100, lr=1.0)
    assert [rate(0, config), rate(5, config), rate(10, config)] == [0, 0.5, 1.0]
    assert rate(99, config) == pytest.approx(0.01)


def test_vectors_are_not_decayed() -> None:
    made = model()
    prepare(made, SMALL)
    decayed, others = make_optimizer(made, SMALL, 0).param_groups
    assert decayed["weight_decay"] == 0.1
    assert others["weight_decay"] == 0
    assert {weight.ndim for weight in others["params"]} == {1}


def test_a_short_text_is_refused(tokens: torch.Tensor) -> None:
    with pytest.raises(TextTooShort):
        train(model(), tokens[:40], SMALL)
