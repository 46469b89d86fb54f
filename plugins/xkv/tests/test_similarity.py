"""CKA sees subspaces, cosine sees tokens, and effective rank sees energy."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from separata_xkv.similarity import cka_matrix, effective_rank, linear_cka, token_cosine


def test_cka_does_not_see_rotation_scale_or_offset(generator: torch.Generator) -> None:
    states = torch.randn(200, 6, generator=generator, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))
    assert float(linear_cka(states, 3 * states @ rotation + 7)) == pytest.approx(1)


def test_states_in_another_basis_are_alike_by_cka_and_unlike_by_cosine(generator: torch.Generator) -> None:
    states = torch.randn(500, 64, generator=generator)
    rotation, _ = torch.linalg.qr(torch.randn(64, 64, generator=generator))
    assert float(linear_cka(states, states @ rotation)) == pytest.approx(1)
    # The mean cosine is the trace of the rotation over its width, for most rotations some hundredths.
    assert abs(float(token_cosine(states, states @ rotation))) < 0.1


def test_independent_states_have_a_small_cka(generator: torch.Generator) -> None:
    first, second = (torch.randn(4000, 8, generator=generator) for _ in range(2))
    # Its expectation for independent Gaussians is about width / tokens.
    assert float(linear_cka(first, second)) < 0.01


def test_states_without_variance_have_no_cka() -> None:
    assert float(linear_cka(torch.ones(10, 3), torch.ones(10, 3))) == 0


def test_the_matrix_holds_the_cka_of_each_pair_in_reach(generator: torch.Generator) -> None:
    layers = [torch.randn(50, width, generator=generator) for width in (3, 5, 4)]
    matrix = cka_matrix(layers)
    assert float(matrix[2, 0]) == pytest.approx(float(linear_cka(layers[0], layers[2])))
    torch.testing.assert_close(matrix, matrix.T)
    torch.testing.assert_close(matrix.diagonal(), torch.ones(3, dtype=torch.float64))
    near = cka_matrix(layers, reach=1)
    assert float(near[0, 2]) == 0
    assert float(near[0, 1]) == float(matrix[0, 1])


@given(rank=st.integers(1, 20))
def test_equal_energies_need_as_many_vectors_as_their_share(rank: int) -> None:
    assert effective_rank(torch.ones(20), rank / 20) == rank


def test_energies_of_zero_are_not_needed() -> None:
    assert effective_rank(torch.tensor([0.0, 4.0, 0.0, 1.0]), 1.0) == 2
    assert effective_rank(torch.tensor([4.0, 1.0]), 0.8) == 1
