"""Simulated systems behave as they say."""

from __future__ import annotations

import numpy as np
import pytest

from separata_tpg import exact
from separata_tpg.simulators import Queue, block_means, switchback, two_state


def test_the_two_states_have_the_known_effect(random: np.random.Generator) -> None:
    process = two_state(5000, 0.5, random)
    # 1 at once, and 0.1 of 5 carried on by half at each step, less what clipping takes.
    assert 1.8 < exact.gate(process) < 2.05
    assert exact.mean(process, 0) == np.float64(1)


def test_a_higher_price_shortens_the_queue(random: np.random.Generator) -> None:
    queue = Queue(steps=1000)
    lengths = queue.run(np.repeat([0, 1], 100)[:, None].repeat(1000, axis=1), random)
    assert lengths.min() >= 0
    assert lengths[100:].mean() < lengths[:100].mean() - 0.3


def test_the_queues_effect_is_that_of_pure_arms() -> None:
    queue, pure = Queue(steps=200), np.repeat([0, 1], 5)[:, None].repeat(200, axis=1)
    lengths = queue.run(pure, np.random.default_rng(0)).mean(1)
    assert queue.effect(5, np.random.default_rng(0)) == pytest.approx(lengths[5:].mean() - lengths[:5].mean())


def test_a_coin_holds_for_its_block(random: np.random.Generator) -> None:
    arms = switchback(50, 25, 10, 0.3, random)
    assert arms.shape == (50, 25)
    assert (arms[:, :10] == arms[:, :1]).all()
    assert (arms[:, 20:] == arms[:, 20:21]).all()
    assert block_means(arms.astype(float), 10).shape == (50, 2)
