"""One small process with drifting chances, and logs drawn from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from separata_tpg import MDP, simulators


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def process() -> MDP:
    """Three states, 30 steps, everything changing in time."""
    drawn = np.random.default_rng(3)
    transitions = drawn.dirichlet(np.ones(3), (30, 2, 3))
    return MDP(transitions, drawn.normal(size=(30, 2, 3)), initial=[0.5, 0.3, 0.2], noise=0.2)


@pytest.fixture
def log(random: np.random.Generator) -> pd.DataFrame:
    """2000 steps of the two states, a minute each."""
    two = simulators.two_state(2000, 0.5, random)
    arms = simulators.switchback(1, 2000, 1, 0.5, random)
    times = pd.date_range("2026-03-02", periods=2000, freq="min")
    return pd.DataFrame({"time": times, "arm": arms[0], "outcome": simulators.run(two, arms, random)[0]})
