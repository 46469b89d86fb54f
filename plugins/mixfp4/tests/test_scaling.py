"""Tensors with float32 scales."""

import pytest
import torch

from separata_mixfp4.errors import BadCodes, GroupMismatch, InvalidSetting, NonFinite
from separata_mixfp4.formats import E2M1, E4M3FN, INT4, INT8
from separata_mixfp4.scaling import ScaledFormat, ScaledTensor

KINDS = [
    ScaledFormat(element, granularity)
    for element in (E4M3FN, E2M1, INT4, INT8)
    for granularity in ("tensor", "row", 8)
]
each = pytest.mark.parametrize("form", KINDS, ids=lambda form: f"{form.element.name}-{form.granularity}")


def sample(dtype=torch.float32):
    return torch.randn(4, 3, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@each
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_fake_quantising_is_what_is_stored(form, dtype):
    x = sample(dtype)
    assert torch.equal(form.fake_quantize(x), form.quantize(x).dequantize(dtype))


@each
def test_quantising_again_with_the_same_scales_changes_nothing(form):
    stored = form.quantize(sample())
    again = form.quantize(stored.dequantize(), stored.scales)
    assert torch.equal(again.codes, stored.codes)


@each
def test_the_largest_magnitude_is_exact_up_to_its_scale(form):
    x = sample()
    error = (form.fake_quantize(x) - x).abs()
    # x / scale * scale: two roundings in float32.
    assert error.flatten()[x.abs().argmax()] <= x.abs().max() * 2**-22


@each
def test_a_power_of_two_goes_into_the_scales(form):
    one, other = form.quantize(sample()), form.quantize(sample() * 8)
    assert torch.equal(one.codes, other.codes)
    assert torch.equal(one.scales * 8, other.scales)


def test_scales_have_the_shape_of_what_shares_them():
    x = sample()
    assert ScaledFormat(INT4, "tensor").scales(x).shape == ()
    assert ScaledFormat(INT4, "row").scales(x).shape == (4, 3, 1)
    assert ScaledFormat(INT4, 8).scales(x).shape == (4, 3, 4)


def test_bytes_are_counted():
    assert ScaledFormat(INT4, 8).quantize(sample()).nbytes == 4 * 3 * 16 + 4 * 3 * 4 * 4
    assert ScaledFormat(E4M3FN, "row").quantize(sample()).nbytes == 4 * 3 * 32 + 4 * 3 * 4


def test_stochastic_rounding_is_unbiased():
    generator = torch.Generator().manual_seed(0)
    x, form = sample().flatten(), ScaledFormat(INT4, 8)
    scales = form.scales(x)
    draws = torch.stack([form.fake_quantize(x, scales, "stochastic", generator) for _ in range(4000)])
    # A draw deviates by at most half a step; the last step may be cut by the scale's own rounding.
    allowed = 5 * 0.5 * scales.repeat_interleave(8) / 4000**0.5
    assert bool(((draws.mean(0) - x).abs() <= allowed).all())


def test_zeros_have_scale_one():
    stored = ScaledFormat(E4M3FN, "row").quantize(torch.zeros(2, 4))
    assert stored.scales.tolist() == [[1.0], [1.0]]
    assert stored.dequantize().tolist() == torch.zeros(2, 4).tolist()


def test_magnitudes_that_half_precision_can_not_divide_are_widened():
    x = torch.tensor([[6e-8, -3e-8]], dtype=torch.float16)
    assert torch.equal(ScaledFormat(E4M3FN, "row").fake_quantize(x), x)


def test_subnormal_scales_are_not_made():
    scales = ScaledFormat(E4M3FN, "row").scales(torch.tensor([[1e-40]]))
    assert scales.item() == torch.finfo(torch.float32).tiny


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_numbers_that_are_not_finite_are_refused(bad):
    x = torch.ones(2, 8, dtype=torch.float64)
    x[1, 3] = bad
    with pytest.raises(NonFinite, match=r"1 of 16 .* \(1, 3\)"):
        ScaledFormat(INT4, 8).quantize(x)


def test_groups_that_do_not_fill_a_row_are_refused():
    with pytest.raises(GroupMismatch, match="multiple of 8"):
        ScaledFormat(INT4, 8).quantize(torch.zeros(2, 12))


@pytest.mark.parametrize("granularity", ["column", 0, -8])
def test_other_granularities_are_refused(granularity):
    with pytest.raises(InvalidSetting):
        ScaledFormat(INT4, granularity)


def test_codes_of_another_shape_are_refused():
    with pytest.raises(BadCodes):
        ScaledTensor(torch.zeros(3, dtype=torch.uint8), torch.tensor(1.0), (7,), ScaledFormat(INT4, "tensor"))


@each
def test_nothing_is_quantised_to_nothing(form):
    stored = form.quantize(torch.zeros(0, 16))
    assert stored.dequantize().shape == (0, 16)
