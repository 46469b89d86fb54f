"""Positions tell which tokens are padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from separata_xkv.errors import UnsupportedModel
from separata_xkv.timeline import Timeline, positions_from_mask

CPU = torch.device("cpu")


def seen(positions: Tensor) -> Timeline:
    timeline = Timeline()
    timeline.append(positions, *positions.shape, CPU)
    return timeline


@given(left=st.lists(st.integers(0, 5), min_size=1, max_size=4), length=st.integers(2, 6))
def test_padding_on_the_left_is_found_from_the_positions_of_a_mask(left: list[int], length: int) -> None:
    total = max(left) + length
    mask = torch.tensor([[0] * pad + [1] * (total - pad) for pad in left])
    padding = seen(positions_from_mask(mask)).padding(total)
    if max(left):
        assert padding is not None
        assert torch.equal(padding, mask == 0)
    else:
        assert padding is None


def test_padding_on_the_right_is_found_too() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    padding = seen(positions_from_mask(mask)).padding(4)
    assert padding is not None
    assert torch.equal(padding, mask == 0)


def test_positions_that_skip_are_no_padding() -> None:
    assert seen(torch.tensor([[0, 3, 4, 9]])).padding(4) is None


def test_tokens_without_positions_continue_each_row() -> None:
    timeline = seen(torch.tensor([[0, 0, 1], [0, 1, 2]]))
    timeline.append(None, 2, 2, CPU)
    assert timeline.positions is not None
    assert timeline.positions.tolist() == [[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert (timeline.length, timeline.horizon) == (5, 4)


def test_one_row_of_positions_serves_the_whole_batch() -> None:
    timeline = Timeline()
    timeline.append(torch.tensor([[0, 1]]), 3, 2, CPU)
    assert timeline.positions is not None
    assert timeline.positions.shape == (3, 2)


def test_rows_and_tokens_can_be_dropped() -> None:
    timeline = seen(torch.tensor([[0, 0, 1], [0, 1, 2]]))
    timeline.select(torch.tensor([1]))
    timeline.crop(1)
    timeline.repeat(2)
    assert timeline.positions is not None
    assert timeline.positions.tolist() == [[0, 1], [0, 1]]
    timeline.crop(9)
    assert timeline.length == 0


def test_positions_with_components_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="one position a token"):
        Timeline().append(torch.zeros(3, 1, 4, dtype=torch.long), 1, 4, CPU)
