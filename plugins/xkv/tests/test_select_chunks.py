"""Selection finds the chunks that matter, whatever their order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_xkv.select_chunks import landmarks_of, outlier_chunks, select_chunks, select_chunks_reference


@settings(max_examples=30, deadline=None)
@given(
    batch=st.integers(1, 2),
    heads=st.integers(1, 3),
    group=st.integers(1, 3),
    chunks=st.integers(1, 12),
    count=st.integers(0, 14),
    seed=st.integers(0, 99),
)
def test_it_agrees_with_the_reference(
    batch: int, heads: int, group: int, chunks: int, count: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(batch, heads * group, 4, generator=generator)
    landmarks = torch.randn(batch, heads, chunks, 4, generator=generator)
    excluded = torch.rand(batch, heads, chunks, generator=generator).topk(chunks // 3).indices
    allowed = torch.rand(batch, chunks, generator=generator) > 0.2
    found = select_chunks(queries, landmarks, count, excluded=excluded, allowed=allowed)
    expected = select_chunks_reference(queries, landmarks, count, excluded=excluded, allowed=allowed)
    # Chunks that are barred share the score 0, and any of them may fill up a selection.
    barred = ~allowed[:, None].expand(batch, heads, chunks)
    for one, other in ((found, expected), (expected, found)):
        same = (one[..., None] == other[..., None, :]).any(-1)
        assert (same | barred.gather(-1, one)).all()


@given(seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_the_order_of_chunks_does_not_matter(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(1, 4, 8, generator=generator)
    landmarks = torch.randn(1, 2, 20, 8, generator=generator)
    order = torch.randperm(20, generator=generator)
    shuffled = select_chunks(queries, landmarks[:, :, order], 5)
    assert torch.equal(order[shuffled].sort(-1).values, select_chunks(queries, landmarks, 5))


def test_a_chunk_is_selected_for_the_one_query_head_that_needs_it() -> None:
    landmarks = torch.eye(6).view(1, 1, 6, 6)
    queries = 9 * torch.stack([torch.eye(6)[1], torch.eye(6)[4]])[None]
    assert select_chunks(queries, landmarks, 2).tolist() == [[[1, 4]]]


def test_excluded_chunks_are_never_selected(generator: torch.Generator) -> None:
    landmarks = torch.randn(1, 1, 6, 4, generator=generator)
    found = select_chunks(
        torch.randn(1, 2, 4, generator=generator), landmarks, 6, excluded=torch.tensor([[[0, 3]]])
    )
    assert found.tolist() == [[[1, 2, 4, 5]]]


def test_chunks_of_padding_come_last(generator: torch.Generator) -> None:
    landmarks = torch.randn(1, 1, 6, 4, generator=generator)
    allowed = torch.tensor([[False, False, True, True, True, False]])
    queries = 10 * torch.randn(1, 2, 4, generator=generator)
    assert select_chunks(queries, landmarks, 3, allowed=allowed).tolist() == [[[2, 3, 4]]]


def test_a_landmark_is_the_mean_of_its_chunk(generator: torch.Generator) -> None:
    keys = torch.randn(2, 3, 12, 5, generator=generator)
    torch.testing.assert_close(landmarks_of(keys, 4)[:, :, 1], keys[:, :, 4:8].mean(2))


def test_padding_does_not_count_in_a_landmark(generator: torch.Generator) -> None:
    keys = torch.randn(1, 1, 8, 5, generator=generator)
    padding = torch.tensor([[True] * 4 + [True, True, False, False]])
    landmarks = landmarks_of(keys, 4, padding)
    torch.testing.assert_close(landmarks[:, :, 1], keys[:, :, 6:8].mean(2))
    assert (landmarks[:, :, 0] == 0).all()


@pytest.mark.parametrize("planted", [0, 3, 7])
def test_a_chunk_with_a_contrary_member_is_an_outlier(planted: int, generator: torch.Generator) -> None:
    keys = torch.ones(1, 2, 64, 4) + 0.1 * torch.randn(1, 2, 64, 4, generator=generator)
    keys[:, :, planted * 8 + 2] *= -1
    found = outlier_chunks(keys, landmarks_of(keys, 8), 1)
    assert found.tolist() == [[[planted], [planted]]]


def test_a_contrary_member_that_is_padding_makes_no_outlier(generator: torch.Generator) -> None:
    keys = torch.ones(1, 1, 32, 4) + 0.1 * torch.randn(1, 1, 32, 4, generator=generator)
    keys[:, :, 0] *= -1
    padding = torch.zeros(1, 32, dtype=torch.bool)
    padding[:, 0] = True
    assert outlier_chunks(keys, landmarks_of(keys, 8, padding), 1, padding).item() != 0
