"""Quantising tensors."""

import gfloat
import numpy as np
import pytest
import torch
from gfloat.formats import format_info_ocp_e2m1, format_info_ocp_e4m3
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_mixfp4.errors import GroupMismatch, InvalidSetting, NonFinite
from separata_mixfp4.formats import E4M3FN
from separata_mixfp4.quantizer import fake_quantize, quantize
from separata_mixfp4.reference import fake_quantize_reference

METHODS = ["mixfp4", "nvfp4", "nvint4", "fouroversix"]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OPTIONS = [{}, {"select": "crest"}, {"rounding": "half_away"}, {"per_row": True}, {"group": 32}]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fake_quantising_is_what_is_stored(tensors, method, dtype, options):
    x = tensors["mixed"].to(dtype).view(2, 4, 96)
    assert torch.equal(
        quantize(x, method=method, **options).dequantize(dtype), fake_quantize(x, method=method, **options)
    )


@pytest.mark.parametrize("method", METHODS)
def test_it_is_the_reference_bit_for_bit_in_float64(tensors, method):
    for x in tensors.values():
        assert torch.equal(fake_quantize(x, method=method), fake_quantize_reference(x, method=method))


@pytest.mark.parametrize("method", METHODS)
def test_quantising_what_is_quantised_changes_nothing(tensors, method):
    stored = quantize(tensors["gaussian"], method=method)
    again = quantize(stored.dequantize(torch.float64), method=method)
    assert torch.equal(again.dequantize(torch.float64), stored.dequantize(torch.float64))


def test_plain_nvfp4_is_that_of_gfloat_and_torch(tensors):
    x = tensors["heavy"].float()
    stored = quantize(x, method="nvfp4")
    largest = x.view(-1, 16).abs().amax(-1)
    scales = (largest / 6 * stored.global_scale).to(torch.float8_e4m3fn)
    assert torch.equal(stored.scales.flatten(), scales.view(torch.uint8))
    steps = scales.float() / stored.global_scale
    for block, step, codes in zip(x.view(-1, 16), steps, stored.elements().view(-1, 16), strict=True):
        expected = [
            gfloat.round_float(format_info_ocp_e2m1, float(value), gfloat.RoundMode.TiesToEven, sat=True)
            for value in (block / step if step > 0 else torch.zeros(16))
        ]
        np.testing.assert_array_equal(codes.numpy(), np.array(expected, dtype=np.float32))


def test_scales_are_what_gfloat_rounds(tensors):
    stored = quantize(tensors["gaussian"], method="nvint4")
    wanted = tensors["gaussian"].view(-1, 16).abs().amax(-1) / 7 * stored.global_scale.double()
    expected = [gfloat.round_float(format_info_ocp_e4m3, float(value), sat=True) for value in wanted]
    assert E4M3FN.decode(stored.scales & 0x7F, torch.float64).flatten().tolist() == expected


def test_plain_methods_set_the_type_bit_never_or_always(tensors):
    assert not quantize(tensors["gaussian"], method="nvfp4").uniform.any()
    assert not quantize(tensors["gaussian"], method="fouroversix").uniform.any()
    assert quantize(tensors["gaussian"], method="nvint4").uniform.all()


@pytest.mark.parametrize("method", METHODS)
@given(power=st.integers(-60, 60))
@settings(deadline=None, max_examples=20)
def test_a_power_of_two_goes_into_the_tensor_scale(method, power):
    x = torch.randn(4, 32, generator=seeded())
    one, other = quantize(x, method=method), quantize(x * 2.0**power, method=method)
    assert torch.equal(one.codes, other.codes)
    assert torch.equal(one.scales, other.scales)
    assert torch.equal(one.global_scale, other.global_scale * 2.0**power)


@pytest.mark.parametrize("method", METHODS)
def test_signs_are_symmetric_down_to_the_codes(tensors, method):
    one, other = quantize(tensors["mixed"], method=method), quantize(-tensors["mixed"], method=method)
    assert torch.equal(one.codes ^ 0x88, other.codes)
    assert torch.equal(one.scales, other.scales)


@given(order=st.permutations(range(16)))
@settings(deadline=None, max_examples=20)
def test_the_order_inside_a_block_is_kept(order):
    x = torch.randn(4, 16, generator=seeded(), dtype=torch.float64)
    assert torch.equal(quantize(x[:, order]).elements()[..., 0, :], quantize(x).elements()[..., 0, order])


@pytest.mark.parametrize(
    ("grid", "method"), [((0, 0.5, 1, 1.5, 2, 3, 4, 6), "nvfp4"), (tuple(range(8)), "nvint4")]
)
def test_every_grid_number_under_every_scale_comes_back(grid, method):
    positive = torch.tensor(grid, dtype=torch.float64)
    scales = E4M3FN.values(torch.float64)[1:127]
    x = torch.cat([positive, -positive]) * scales[scales * grid[-1] <= 2688, None]
    # One block with the largest number there is fixes the tensor scale at 1.
    x = torch.cat([torch.full((1, 16), 2688.0, dtype=torch.float64), x])
    assert torch.equal(fake_quantize(x, method=method), x)
    assert torch.equal(fake_quantize(x), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stochastic_codes_are_those_of_fake_quantising(tensors, dtype):
    x = tensors["gaussian"].to(dtype)
    stored = quantize(x, rounding="stochastic", generator=seeded(1))
    assert torch.equal(stored.dequantize(dtype), fake_quantize(x, rounding="stochastic", generator=seeded(1)))


def test_rows_with_a_scale_of_their_own_do_not_see_each_other(tensors):
    x = tensors["gaussian"].clone()
    first = fake_quantize(x, per_row=True)[0]
    x[1:] *= 1e6
    assert torch.equal(fake_quantize(x, per_row=True)[0], first)


def test_padding_is_left_out_again(tensors):
    x = tensors["gaussian"][:, :90]
    with pytest.raises(GroupMismatch, match=r"dimension 1 of shape \(8, 90\)"):
        quantize(x)
    stored = quantize(x, pad=True)
    assert stored.dequantize().shape == x.shape
    assert torch.equal(stored.dequantize(torch.float64), fake_quantize(x, pad=True))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize("function", [quantize, fake_quantize])
def test_what_is_not_finite_is_counted_and_located(function, bad):
    x = torch.ones(2, 32, dtype=torch.float64)
    x[1, 20] = bad
    with pytest.raises(NonFinite, match=r"1 of 64 .* first at \(1, 20\)"):
        function(x)


def test_zeros_have_zero_codes_and_scale_one():
    stored = quantize(torch.zeros(2, 32))
    assert stored.global_scale.item() == 1
    assert not stored.codes.any()
    assert not stored.dequantize().any()


def test_blocks_that_e4m3_can_not_scale_are_zero_and_counted():
    x = torch.ones(2, 32)
    x[1, 16:] = 1e-9
    stored = quantize(x)
    assert stored.empty_blocks.tolist() == [[False, False], [False, True]]
    assert not stored.dequantize()[1, 16:].any()


@pytest.mark.parametrize("tiny", [1e-7, 1e-38, 1e-45])
def test_tiny_tensors_do_not_become_nan(tiny):
    x = torch.full((1, 16), tiny)
    assert fake_quantize(x).isfinite().all()


def test_half_precision_whose_scale_would_vanish_is_widened():
    x = torch.full((1, 16), 6e-8, dtype=torch.float16)
    assert torch.equal(fake_quantize(x), x)


@pytest.mark.parametrize("shape", [(0, 32), (3, 0), (2, 0, 16)])
@pytest.mark.parametrize("per_row", [False, True])
def test_nothing_is_quantised_to_nothing(shape, per_row):
    stored = quantize(torch.zeros(shape), per_row=per_row)
    assert stored.dequantize().shape == fake_quantize(torch.zeros(shape), per_row=per_row).shape == shape


@pytest.mark.parametrize(
    "options",
    [
        {"method": "mxfp4"},
        {"select": "best"},
        {"group": 15},
        {"group": 2},
        {"rounding": "down"},
        {"rounding": "stochastic"},
    ],
    ids=str,
)
def test_unknown_settings_are_refused(options):
    with pytest.raises(InvalidSetting):
        quantize(torch.ones(2, 480), **options)


@pytest.mark.parametrize("x", [torch.ones(16, dtype=torch.int32), torch.tensor(1.0)])
def test_what_has_no_blocks_is_refused(x):
    with pytest.raises(InvalidSetting):
        quantize(x)
