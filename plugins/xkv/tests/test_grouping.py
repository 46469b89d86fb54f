"""Layers are grouped in order, by number or by likeness."""

from __future__ import annotations

import torch

from separata_xkv.grouping import alike, windows


def test_the_last_window_may_be_shorter() -> None:
    assert windows([0, 1, 2, 3, 4], 2) == [(0, 1), (2, 3), (4,)]


def test_neighbours_join_while_they_resemble_the_whole_group() -> None:
    similarity = torch.eye(5) + 0.9 * (torch.ones(5, 5) - torch.eye(5))
    similarity[3, :3] = similarity[:3, 3] = 0.2
    assert alike(similarity, 0.5, 4) == [(0, 1, 2), (3, 4)]


def test_a_full_group_takes_no_more() -> None:
    assert alike(torch.ones(5, 5), 0.5, 2) == [(0, 1), (2, 3), (4,)]


def test_layers_that_resemble_none_stay_alone() -> None:
    assert alike(torch.eye(3), 0.5, 4) == [(0,), (1,), (2,)]
