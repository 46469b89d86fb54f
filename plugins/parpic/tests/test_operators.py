"""The reversible operator: rows sum to 1, detailed balance, and the known operators that it contains."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from separata_parpic import errors, reversible_operator, vertex_measure
from separata_parpic.operators import csr, out_in_degrees, random_walk

Layout = Callable[[Tensor], Tensor]
CLOSE = {"rtol": 0.0, "atol": 1e-12}


def without_ways_out(weights: Tensor) -> Tensor:
    """The weights with a self-loop where there is no other way out."""
    return weights + torch.diag((weights.sum(1) == 0).double())


def test_rows_of_the_walk_sum_to_one_and_a_dangling_vertex_stays(weights: Tensor, layout: Layout) -> None:
    walk = random_walk(layout(weights)).to_dense()
    torch.testing.assert_close(walk.sum(1), torch.ones(20, dtype=torch.float64), **CLOSE)
    assert walk[4, 4] == 1


def test_a_dangling_vertex_may_lead_everywhere(weights: Tensor, layout: Layout) -> None:
    walk = random_walk(layout(weights), "uniform").to_dense()
    torch.testing.assert_close(walk[4], torch.full((20,), 1 / 20, dtype=torch.float64), **CLOSE)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.5, 1.0])
def test_the_operator_is_a_reversible_walk_with_a_real_spectrum(
    gamma: float, weights: Tensor, layout: Layout
) -> None:
    measure = vertex_measure(weights, gamma=gamma)
    operator, stationary = reversible_operator(layout(weights), measure)
    operator = operator.to_dense()
    flow = stationary[:, None] * operator
    torch.testing.assert_close(operator.sum(1), torch.ones(20, dtype=torch.float64), **CLOSE)
    torch.testing.assert_close(flow, flow.T, **CLOSE)
    assert torch.linalg.eigvals(operator).imag.abs().max() < 1e-12
    assert torch.linalg.eigvals(random_walk(weights)).imag.abs().max() > 0.01


def test_without_in_degrees_it_is_the_walk_of_the_symmetrised_graph(weights: Tensor) -> None:
    operator, _ = reversible_operator(weights, vertex_measure(weights, gamma=0.0))
    torch.testing.assert_close(operator, random_walk(weights + weights.T), **CLOSE)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_on_an_undirected_graph_it_is_the_walk_whatever_gamma(gamma: float, weights: Tensor) -> None:
    undirected = weights + weights.T
    operator, _ = reversible_operator(undirected, vertex_measure(undirected, gamma=gamma))
    torch.testing.assert_close(operator, random_walk(undirected), **CLOSE)


def test_with_the_stationary_law_it_is_the_additive_reversibilisation(weights: Tensor) -> None:
    weights = without_ways_out(weights) + 0.01
    walk = random_walk(weights)
    law = torch.linalg.matrix_power(walk, 4096)[0]
    operator, stationary = reversible_operator(weights, law)
    backwards = law[None, :] * walk.T / law[:, None]
    torch.testing.assert_close(operator, (walk + backwards) / 2, **CLOSE)
    torch.testing.assert_close(stationary, law, **CLOSE)


def test_gamma_reweights_each_edge_by_the_degrees_of_its_source(weights: Tensor) -> None:
    weights = without_ways_out(weights)
    out, into = out_in_degrees(weights)
    operator, _ = reversible_operator(weights, vertex_measure(weights, gamma=0.4))
    reweighted = (0.6 + 0.4 * into / out)[:, None] * weights
    torch.testing.assert_close(operator, random_walk(reweighted + reweighted.T), **CLOSE)


@given(st.permutations(range(20)))
def test_relabelling_vertices_relabels_the_operator(order: list[int]) -> None:
    drawn = torch.rand(20, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    measure = vertex_measure(drawn)
    operator, _ = reversible_operator(drawn, measure)
    relabelled, _ = reversible_operator(drawn[order][:, order], measure[order])
    torch.testing.assert_close(relabelled, operator[order][:, order], **CLOSE)


def test_the_scale_of_the_weights_does_not_matter(weights: Tensor) -> None:
    weights = without_ways_out(weights)
    one, _ = reversible_operator(weights, vertex_measure(weights))
    other, _ = reversible_operator(7 * weights, vertex_measure(7 * weights))
    torch.testing.assert_close(one, other, **CLOSE)


def test_two_parts_give_the_eigenvalue_one_twice(weights: Tensor) -> None:
    both = torch.block_diag(weights + 0.01, weights + 0.02)
    operator, _ = reversible_operator(both, vertex_measure(both))
    largest = torch.linalg.eigvals(operator).real.sort(descending=True).values[:3]
    torch.testing.assert_close(largest[:2], torch.ones(2, dtype=torch.float64), rtol=0.0, atol=1e-9)
    assert largest[2] < 0.99


def test_a_source_has_no_mass_where_only_in_degrees_count() -> None:
    line = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(errors.ZeroMeasure, match="1 vertices have no mass"):
        reversible_operator(line, vertex_measure(line, gamma=1.0))


def test_uniform_ways_out_of_a_large_graph_are_refused() -> None:
    size = 10_000
    one = csr(torch.tensor([0]), torch.tensor([1]), torch.ones(1), size)
    with pytest.raises(errors.InvalidGraph, match="self-loop"):
        random_walk(one, "uniform")


def test_an_unknown_way_out_is_refused(weights: Tensor) -> None:
    with pytest.raises(errors.InvalidGraph, match="teleport"):
        random_walk(weights, "teleport")
