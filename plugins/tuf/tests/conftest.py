"""A small process with noisy rewards."""

from __future__ import annotations

import pytest

from separata_tuf import MDP
from separata_tuf.benchmarks import random_process


@pytest.fixture
def process() -> MDP:
    """Six states, two actions."""
    return random_process(0)
