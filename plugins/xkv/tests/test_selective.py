"""What is kept beside the factors: landmarks, outliers and the prompt's end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separata_xkv.config import XKVConfig
from separata_xkv.selective import Selective, take, tokens_of

SETTINGS = XKVConfig(mode="sr", chunk=4, outlier_chunks=2, local_chunks=1, budget=8)
LENGTH = 4 * 9 + 3


@pytest.fixture
def states(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    keys, values = (torch.randn(2, 3, LENGTH, 5, generator=generator) for _ in range(2))
    return keys, values


def test_the_end_of_the_prompt_and_the_outliers_are_kept_exact(states: tuple[Tensor, Tensor]) -> None:
    keys, values = states
    selective = Selective.of(keys, values, SETTINGS)
    assert selective.landmarks.shape == (2, 3, 8, 5)
    rows = selective.exact_rows()
    assert rows.shape == (2, 3, 2 * 4 + 4 + 3)
    assert rows[0, 0, -7:].tolist() == list(range(32, LENGTH))
    assert torch.equal(selective.keys, take(keys, rows))
    assert torch.equal(selective.values, take(values, rows))


def test_overlay_writes_exact_tokens_and_no_others(states: tuple[Tensor, Tensor]) -> None:
    selective = Selective.of(*states, SETTINGS)
    keys, values = (torch.zeros(2, 3, LENGTH, 5) for _ in range(2))
    selective.overlay(keys, values)
    rows = selective.exact_rows()
    assert torch.equal(take(keys, rows), selective.keys)
    assert int((values != 0).any(-1).sum()) == rows.numel()


def test_a_prompt_of_local_chunks_only_has_nothing_to_select(states: tuple[Tensor, Tensor]) -> None:
    keys, values = (tensor[:, :, :7] for tensor in states)
    selective = Selective.of(keys, values, SETTINGS)
    assert selective.landmarks.shape[2] == 0
    assert torch.equal(selective.keys, keys)


def test_batch_rows_can_be_chosen_and_repeated(states: tuple[Tensor, Tensor]) -> None:
    selective = Selective.of(*states, SETTINGS)
    before = {name: tensor.clone() for name, tensor in selective.named().items()}
    selective.select(torch.tensor([1]))
    selective.repeat(2)
    for name, tensor in selective.named().items():
        assert torch.equal(tensor, before[name][[1, 1]])


def test_chunks_have_consecutive_tokens() -> None:
    assert tokens_of(torch.tensor([[[0, 3]]]), 4).tolist() == [[[0, 1, 2, 3, 12, 13, 14, 15]]]
