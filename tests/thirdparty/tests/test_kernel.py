"""The kernel does what its definition says."""

import pytest
import torch
from separata_nile import soft_threshold


def test_numbers_below_the_level_vanish() -> None:
    assert soft_threshold(torch.tensor([-0.4, 0.0, 0.4]), 0.5).count_nonzero() == 0


def test_a_negative_level_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        soft_threshold(torch.ones(2), -1.0)
