"""The arithmetic of blocks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_mixfp4 import blocks as module
from separata_mixfp4.blocks import SCHEMES, choose, largest_of, on_grid
from separata_mixfp4.formats import E2M1, INT4


def chosen(x, method="mixfp4", **options):
    largest = largest_of(x)
    divisor = (SCHEMES[method].reach / largest.max()).float()
    return choose(x, largest, divisor, SCHEMES[method], **options), divisor


def errors(x, method):
    found, _ = chosen(x, method, dequantize=True)
    return (found.elements.double() - x.double()).square().sum(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_block_has_the_smaller_error_exactly(tensors, dtype):
    for tensor in tensors.values():
        x = tensor.to(dtype).view(-1, 16)
        assert torch.equal(errors(x, "mixfp4"), torch.minimum(errors(x, "nvfp4"), errors(x, "nvint4")))


def test_a_tie_goes_to_the_uniform_grid():
    # Zeros and the largest number of all are exact on both grids.
    x = torch.zeros(1, 16)
    x[0, 3] = 1.0
    found, _ = chosen(x)
    assert found.last.tolist() == [True]


@pytest.mark.parametrize("rounding", ["nearest_even", "half_away"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_known_grid_gives_what_the_choice_gave(tensors, dtype, rounding):
    for tensor in tensors.values():
        x = tensor.to(dtype).view(-1, 16)
        found, divisor = chosen(x, rounding=rounding)
        again = on_grid(x, found.scales / divisor.to(dtype), found.last, rounding)
        assert torch.equal(again, found.elements)


def test_pieces_do_not_show(tensors, monkeypatch):
    x = tensors["gaussian"].float().view(-1, 16)
    whole, _ = chosen(x)
    monkeypatch.setattr(module, "PIECE", 48)
    parts, _ = chosen(x)
    assert torch.equal(whole.elements, parts.elements)
    assert torch.equal(whole.last, parts.last)


@given(st.lists(st.floats(-8, 8, width=32), min_size=16, max_size=16))
@settings(deadline=None)
def test_rounding_by_an_anchor_is_rounding_to_nearest_even(values):
    x = torch.tensor([values], dtype=torch.float32)
    for uniform, form in ((False, E2M1), (True, INT4)):
        result, work = torch.empty_like(x), torch.empty_like(x)
        module._round_into(
            result, x.clone(), work, module.UNIFORM if uniform else module.FLOATING, "nearest_even"
        )
        assert torch.equal(result, form.round(x))


def test_no_other_border_of_the_crest_factor_chooses_much_better():
    x = torch.randn(20_000, 16, generator=torch.Generator().manual_seed(0))
    by_error, _ = chosen(x)
    by_crest, _ = chosen(x, select="crest")
    crest = largest_of(x) / x.square().mean(-1).sqrt()
    best = max(((crest < border) == by_error.last).double().mean() for border in torch.linspace(1.5, 3.5, 80))
    assert (by_error.last == by_crest.last).double().mean() > best - 0.01


def test_a_block_whose_scale_vanishes_is_zero():
    x = torch.ones(3, 16)
    x[1], x[2] = 3e-6, 1e-9
    found, _ = chosen(x, dequantize=True)
    assert found.elements[1].gt(0).all()
    assert found.elements[2].eq(0).all()


def test_stochastic_choices_do_not_depend_on_the_draws(tensors):
    x = tensors["gaussian"].view(-1, 16)
    nearest, _ = chosen(x)
    for seed in range(3):
        drawn, _ = chosen(x, rounding="stochastic", generator=torch.Generator().manual_seed(seed))
        assert torch.equal(drawn.last, nearest.last)


def test_stochastic_rounding_is_unbiased_even_at_the_largest(tensors):
    x = tensors["gaussian"].view(-1, 16)
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack(
        [
            chosen(x, rounding="stochastic", generator=generator, dequantize=True)[0].elements
            for _ in range(200)
        ]
    )
    # Neighbours are at most a third of the block's largest apart; five standard errors of the widest draw.
    allowed = 5 * 0.5 * largest_of(x)[:, None] * 0.4 / 200**0.5
    assert ((draws.mean(0) - x).abs() <= allowed).all()
