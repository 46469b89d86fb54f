from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from separata_oea import Routing, expected_experts, route
from separata_oea.errors import InvalidScores, InvalidSetting
from separata_oea.reference import route_reference

TIED = [-math.inf, 0.0, -0.0, 0.25, 0.5, 1.0]


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, int, int, dict[str, Any]]:
    """Scores with many ties and excluded experts, and every option."""
    tokens, experts = draw(st.integers(0, 6)), draw(st.integers(1, 9))
    k = draw(st.integers(1, 7))
    k0 = draw(st.integers(1, min(k, experts)))
    values = draw(st.lists(st.sampled_from(TIED), min_size=tokens * experts, max_size=tokens * experts))
    scores = torch.tensor(values, dtype=torch.float32).reshape(tokens, experts)
    if draw(st.booleans()):
        weights = draw(
            st.lists(st.floats(0.0078125, 1, width=16), min_size=len(values), max_size=len(values))
        )
        mixing = torch.tensor(weights).reshape(tokens, experts)
    else:
        mixing = scores.clamp(min=0)
    options: dict[str, Any] = {
        "mixing": mixing,
        "pooled": draw(st.booleans()),
        "p": draw(st.sampled_from([1.0, 1.0, 0.6])),
        "k_max": draw(st.sampled_from([None, k, k + 2])),
        "max_rank": draw(st.sampled_from([None, k0, k0 + 2])),
        "target": draw(st.sampled_from([None, 1.0, 3.5])),
        "shards": draw(st.sampled_from([s for s in (1, 2, 3) if experts % s == 0])),
    }
    bools = st.booleans()
    if draw(bools):
        options["active"] = torch.tensor(
            draw(st.lists(bools, min_size=tokens, max_size=tokens)), dtype=torch.bool
        )
    if draw(bools):
        options["loaded"] = torch.tensor(draw(st.lists(bools, min_size=experts, max_size=experts)))
    if draw(bools):
        options["total"] = torch.linspace(0.5, 2, tokens)
    return scores, k, k0, options


@settings(max_examples=150, deadline=None)
@given(batches(), st.sampled_from([torch.float32, torch.float64]))
def test_it_is_the_two_phases_in_one(
    batch: tuple[Tensor, int, int, dict[str, Any]], dtype: torch.dtype
) -> None:
    scores, k, k0, options = batch
    found = route(scores.to(dtype), k, k0, **options)
    expected = route_reference(scores.to(dtype), k, k0, **options)
    for name, one, other in zip(Routing._fields, found, expected, strict=True):
        if name == "weights":
            torch.testing.assert_close(one.double(), other, rtol=1e-6, atol=1e-7)
        else:
            assert torch.equal(one, other), name


def drawn(tokens: int = 16, experts: int = 32, seed: int = 0) -> Tensor:
    return torch.randn(tokens, experts, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def test_k0_of_k_is_plain_routing() -> None:
    scores = drawn()
    found, plain = route(scores, 4, 4), scores.topk(4)
    assert torch.equal(found.indices, plain.indices)
    torch.testing.assert_close(found.weights, plain.values / plain.values.sum(-1, keepdim=True))
    assert int(found.experts_hit) == plain.indices.unique().numel() == int(found.load[-1])


def test_one_row_is_plain_top_k0() -> None:
    found = route(drawn(1), 4, 2)
    assert torch.equal(found.indices[:, :2], drawn(1).topk(2).indices)
    assert found.indices[:, 2:].tolist() == [[32, 32]]
    assert found.weights[:, 2:].tolist() == [[0.0, 0.0]]


def test_equal_rows_load_k0_experts() -> None:
    assert int(route(drawn(1).expand(9, -1), 4, 3).experts_hit) == 3


@pytest.mark.parametrize("k0", [1, 2, 3, 4])
def test_sets_lie_between_the_base_and_the_union(k0: int) -> None:
    scores = drawn()
    found = route(scores, 4, k0)
    union = set(found.union.nonzero().flatten().tolist())
    for row, base in zip(found.indices.tolist(), scores.topk(k0).indices.tolist(), strict=True):
        own = {expert for expert in row if expert < 32}
        assert set(base) <= own <= union
        assert len(own) <= 4
    assert int(found.experts_hit) <= min(32, 16 * k0)
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(16))


def test_the_order_of_rows_does_not_matter(generator: torch.Generator) -> None:
    scores, order = drawn(), torch.randperm(16, generator=generator)
    plain, permuted = route(scores, 4, 2), route(scores[order], 4, 2)
    assert torch.equal(plain.indices[order], permuted.indices)
    assert torch.equal(plain.union, permuted.union)


def test_another_row_never_shrinks_the_union() -> None:
    scores = drawn(20)
    unions = [route(scores[:rows], 4, 2).union for rows in range(1, 21)]
    assert all(bool((later | ~earlier).all()) for earlier, later in pairwise(unions))


def test_rows_that_are_not_live_load_nothing() -> None:
    scores = drawn()
    active = torch.arange(16) < 5
    found = route(scores, 4, 2, active=active)
    assert torch.equal(found.union, route(scores[:5], 4, 2).union)
    within = torch.cat([found.union, torch.tensor([True])])
    assert bool(within[found.indices].all())


def test_without_live_rows_nothing_is_loaded() -> None:
    found = route(drawn(), 4, 2, active=torch.zeros(16, dtype=torch.bool))
    assert int(found.experts_hit) == 0
    assert bool((found.indices == 32).all())
    assert bool((found.weights == 0).all())


def test_load_tells_what_every_k0_would_load() -> None:
    scores = drawn()
    load = route(scores, 4, 1).load.tolist()
    assert load == [int(route(scores, 4, k0).experts_hit) for k0 in range(1, 5)]


@pytest.mark.parametrize("target", [1, 10, 14, 32])
def test_a_target_takes_the_largest_k0_that_keeps_to_it(target: int) -> None:
    scores = drawn()
    load = route(scores, 4, 4).load.tolist()
    found = route(scores, 4, 4, target=target)
    assert int(found.k0) == max([k0 for k0 in range(1, 5) if load[k0 - 1] <= target], default=1)
    assert int(found.experts_hit) == load[int(found.k0) - 1]


def test_uniform_scores_load_what_the_closed_form_says() -> None:
    generator = torch.Generator().manual_seed(0)
    hits = torch.stack(
        [route(torch.rand(16, 128, generator=generator), 8, 8).experts_hit for _ in range(300)]
    ).double()
    error = float(hits.std()) / math.sqrt(len(hits))
    assert abs(float(hits.mean()) - expected_experts(128, 8, 16)) < 3 * error


def test_it_compiles_as_one_graph() -> None:
    torch.compiler.reset()
    compiled = torch.compile(route, fullgraph=True, backend="eager")
    scores, active = drawn(), torch.arange(16) < 12
    for one, other in zip(
        compiled(scores, 4, 2, active=active), route(scores, 4, 2, active=active), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("k", "k0", "options", "says"),
    [
        (4, 0, {}, "k0 is 1 to 4"),
        (4, 5, {}, "k0 is 1 to 4"),
        (40, 33, {}, "k0 is 1 to 32"),
        (4, 2, {"k_max": 3}, "at least the model's k, 4"),
        (4, 2, {"max_rank": 1}, "at least k0, 2"),
        (4, 2, {"shards": 5}, "divisor"),
    ],
)
def test_numbers_out_of_range_are_refused(k: int, k0: int, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        route(drawn(), k, k0, **options)


def test_nan_is_refused_before_anything_is_indexed() -> None:
    scores = drawn()
    scores[3, 5] = math.nan
    with pytest.raises(InvalidScores, match="NaN"):
        route(scores, 4, 2)


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        (torch.ones(4), {}),
        (torch.ones(4, 8, dtype=torch.int64), {}),
        (torch.ones(4, 8), {"active": torch.ones(3, dtype=torch.bool)}),
        (torch.ones(4, 8), {"active": torch.ones(4)}),
    ],
)
def test_shapes_that_do_not_fit_are_refused(scores: Tensor, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidScores):
        route(scores, 4, 2, **options)
