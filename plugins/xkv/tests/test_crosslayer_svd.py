"""The kernel finds the best shared factors, by every route."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from separata_xkv.config import Solver
from separata_xkv.crosslayer_svd import Factors, crosslayer_svd, crosslayer_svd_reference, gram_matrix
from separata_xkv.errors import InvalidSetting

EXACT = ("gram", "svd")


def states_of(generator: torch.Generator, length: int, widths: list[int], batch: int = 2) -> list[Tensor]:
    """Layers with a common subspace, noise, and singular values that fall like those of real keys."""
    total = sum(widths)
    scale = 1 / (1 + torch.arange(total, dtype=torch.float64))
    shared = torch.randn(batch, length, total, generator=generator, dtype=torch.float64) * scale
    mixing = torch.randn(batch, total, total, generator=generator, dtype=torch.float64)
    noise = 0.01 * torch.randn(batch, length, total, generator=generator, dtype=torch.float64)
    return list(torch.split(shared @ mixing + noise, widths, dim=-1))


def product(factors: Factors) -> Tensor:
    return factors.rows.double() @ torch.cat(factors.bases, dim=-1).double()


def error(states: list[Tensor], factors: Factors) -> Tensor:
    return (torch.cat(states, dim=-1).double() - product(factors)).square().sum((-2, -1))


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 40),
    widths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    rank=st.integers(1, 12),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("solver", EXACT)
def test_squared_error_is_the_tail_of_squared_singular_values(
    solver: Solver, length: int, widths: list[int], rank: int, seed: int
) -> None:
    states = states_of(torch.Generator().manual_seed(seed), length, widths)
    singular = torch.linalg.svdvals(torch.cat(states, dim=-1))
    tail = singular[..., rank:].square().sum(-1)
    # Rounding of float64 relative to the whole norm; at full rank the tail itself is zero.
    slack = 1e-12 * singular.square().sum(-1)
    assert (
        (error(states, crosslayer_svd(states, rank, solver=solver)) - tail).abs() <= slack + 1e-6 * tail
    ).all()


@pytest.mark.parametrize("rank", [4, 20, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_sketch_is_within_one_percent_of_the_best_error(
    rank: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    states = [layer.to(dtype) for layer in states_of(generator, 200, [32, 32, 32])]
    best = error(states, crosslayer_svd_reference(states, rank))
    assert (error(states, crosslayer_svd(states, rank, solver="randomized")) <= 1.01**2 * best).all()


@pytest.mark.parametrize("solver", get_args(Solver))
@pytest.mark.parametrize("length", [10, 100])
def test_all_solvers_give_the_same_product(solver: Solver, length: int, generator: torch.Generator) -> None:
    states = states_of(generator, length, [8, 8, 8])
    reference = product(crosslayer_svd_reference(states, 5))
    # A sketch of a problem this small spans everything.
    torch.testing.assert_close(
        product(crosslayer_svd(states, 5, solver=solver)), reference, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("solver", get_args(Solver))
def test_factors_have_falling_singular_values_and_orthonormal_bases(
    solver: Solver, generator: torch.Generator
) -> None:
    factors = crosslayer_svd(states_of(generator, 60, [8, 8]), 6, solver=solver)
    basis = torch.cat(factors.bases, dim=-1)
    torch.testing.assert_close(
        basis @ basis.mT, torch.eye(6, dtype=basis.dtype).expand(2, 6, 6), rtol=0, atol=1e-9
    )
    norms = factors.rows.norm(dim=-2)
    assert (norms.diff(dim=-1) <= 1e-9).all()
    assert (basis.gather(-1, basis.abs().argmax(-1, keepdim=True)) > 0).all()


@pytest.mark.parametrize("solver", get_args(Solver))
@pytest.mark.parametrize(("length", "widths"), [(30, [4, 4]), (6, [4, 4])])
def test_full_rank_loses_nothing(
    solver: Solver, length: int, widths: list[int], generator: torch.Generator
) -> None:
    states = [layer.float() for layer in states_of(generator, length, widths)]
    factors = crosslayer_svd(states, 99, solver=solver)
    assert factors.rows.shape[-1] == min(length, sum(widths))
    torch.testing.assert_close(product(factors).float(), torch.cat(states, dim=-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("solver", get_args(Solver))
def test_one_layer_is_its_own_truncated_svd(solver: Solver, generator: torch.Generator) -> None:
    (layer,) = states_of(generator, 50, [12])
    left, singular, right = torch.linalg.svd(layer, full_matrices=False)
    truncated = (left[..., :3] * singular[..., None, :3]) @ right[..., :3, :]
    torch.testing.assert_close(
        product(crosslayer_svd([layer], 3, solver=solver)), truncated, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("solver", get_args(Solver))
def test_batch_rows_do_not_mix(solver: Solver, generator: torch.Generator) -> None:
    states = states_of(generator, 40, [6, 6], batch=3)
    together = product(crosslayer_svd(states, 4, solver=solver))
    for row in range(3):
        alone = product(crosslayer_svd([layer[row : row + 1] for layer in states], 4, solver=solver))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", get_args(Solver))
def test_states_of_zeros_have_factors_of_zeros(solver: Solver) -> None:
    factors = crosslayer_svd([torch.zeros(1, 20, 4), torch.zeros(1, 20, 4)], 3, solver=solver)
    assert torch.equal(product(factors), torch.zeros(1, 20, 8, dtype=torch.float64))


@pytest.mark.parametrize("solver", get_args(Solver))
@pytest.mark.parametrize("length", [12, 200])
def test_large_half_precision_states_do_not_overflow(
    solver: Solver, length: int, generator: torch.Generator
) -> None:
    # The largest singular value, about 1e5 here, exceeds what float16 holds.
    states = [(1000 * torch.randn(1, length, 8, generator=generator) + 5000).half() for _ in range(2)]
    factors = crosslayer_svd(states, 16, solver=solver)
    assert factors.rows.dtype == factors.bases[0].dtype == torch.float16
    joined = torch.cat(states, dim=-1).double()
    # float16 has 11 bits, and each product sums 16 rounded numbers.
    assert (product(factors) - joined).norm() <= 0.005 * joined.norm()


def test_auto_sketches_wide_groups_of_low_rank_and_solves_others_exactly(generator: torch.Generator) -> None:
    wide = [torch.randn(1, 1600, 800, generator=generator) for _ in range(2)]
    assert torch.equal(crosslayer_svd(wide, 4).rows, crosslayer_svd(wide, 4, solver="randomized").rows)
    narrow = states_of(generator, 50, [8, 8])
    assert torch.equal(crosslayer_svd(narrow, 4).rows, crosslayer_svd(narrow, 4, solver="gram").rows)


def test_another_generator_draws_another_sketch(generator: torch.Generator) -> None:
    states = [torch.randn(1, 200, 100, generator=generator)]
    first = crosslayer_svd(states, 4, solver="randomized")
    assert torch.equal(first.rows, crosslayer_svd(states, 4, solver="randomized").rows)
    other = crosslayer_svd(states, 4, solver="randomized", generator=torch.Generator().manual_seed(5))
    assert not torch.equal(first.rows, other.rows)


def test_the_gram_matrix_sums_over_blocks_of_rows(generator: torch.Generator) -> None:
    # More rows than one block, so that blocks are really summed.
    states = [torch.randn(1, 9000, width, generator=generator) for width in (3, 5)]
    joined = torch.cat(states, dim=-1).double()
    torch.testing.assert_close(gram_matrix(states), joined.mT @ joined, rtol=1e-5, atol=1e-2)


def test_unknown_solvers_and_no_states_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="solver is 'lanczos'"):
        crosslayer_svd([torch.zeros(1, 2, 2)], 1, solver="lanczos")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="no states"):
        crosslayer_svd([], 1)
