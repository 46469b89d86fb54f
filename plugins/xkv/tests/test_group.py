"""A group rebuilds what its factors hold, block by block."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separata_xkv.crosslayer_svd import Factors, crosslayer_svd
from separata_xkv.group import Group, heads_together
from separata_xkv.rope import Unrotated

LENGTH, HEADS, WIDTH = 20, 2, 4


@pytest.fixture
def states(generator: torch.Generator) -> list[Tensor]:
    return [torch.randn(3, HEADS, LENGTH, WIDTH, generator=generator) for _ in range(2)]


@pytest.fixture
def group(states: list[Tensor]) -> Group:
    factors = crosslayer_svd([heads_together(layer) for layer in states], 99)
    return Group(
        factors, factors, layers=[4, 5], rotations=[Unrotated()] * 2, heads=[HEADS] * 2, horizon=LENGTH - 1
    )


def test_any_range_of_tokens_can_be_rebuilt(group: Group, states: list[Tensor]) -> None:
    for slot, layer in enumerate(states):
        torch.testing.assert_close(group.key_block(slot, 3, 9, None), layer[:, :, 3:9], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(group.value_block(slot, 0, LENGTH), layer, rtol=1e-5, atol=1e-5)


def test_rows_and_bases_by_head_multiply_to_the_same(group: Group, states: list[Tensor]) -> None:
    rebuilt = group.keys.rows[:, None] @ group.key_basis(1)
    torch.testing.assert_close(rebuilt, states[1], rtol=1e-5, atol=1e-5)


def test_batch_rows_can_be_chosen_and_repeated(group: Group, states: list[Tensor]) -> None:
    group.select(torch.tensor([2, 0]))
    torch.testing.assert_close(group.key_block(0, 0, LENGTH, None), states[0][[2, 0]], rtol=1e-5, atol=1e-5)
    group.repeat(2)
    torch.testing.assert_close(group.value_block(0, 0, LENGTH), states[0][[2, 2, 0, 0]], rtol=1e-5, atol=1e-5)


def test_cropped_rows_are_freed(group: Group) -> None:
    group.crop(15)
    assert group.length == 5
    rows = group.keys.rows
    assert rows.untyped_storage().nbytes() == rows.numel() * rows.element_size()


def test_it_holds_its_factors_and_nothing_else(group: Group) -> None:
    expected = Factors(group.keys.rows, group.keys.bases)
    assert {id(tensor) for tensor in group.tensors()} == {id(expected.rows), *map(id, expected.bases)}
