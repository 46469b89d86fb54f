"""Number formats against gfloat, ml_dtypes and torch, bit for bit."""

import gfloat
import ml_dtypes
import numpy as np
import pytest
import torch
from gfloat import RoundMode
from gfloat.formats import (
    format_info_ocp_e2m1,
    format_info_ocp_e2m3,
    format_info_ocp_e3m2,
    format_info_ocp_e4m3,
    format_info_ocp_e5m2,
)
from hypothesis import given
from hypothesis import strategies as st

from separata_mixfp4.errors import InvalidSetting, NonFinite
from separata_mixfp4.formats import (
    E1M2,
    E2M1,
    E2M2,
    E2M3,
    E3M2,
    E4M3FN,
    E5M2,
    INT4,
    INT8,
    FloatFormat,
    integer,
    named,
)

OURS = [E4M3FN, E5M2, E3M2, E2M3, E2M2, E2M1, E1M2, INT4, INT8]
GFLOAT = [
    (E4M3FN, format_info_ocp_e4m3),
    (E5M2, format_info_ocp_e5m2),
    (E3M2, format_info_ocp_e3m2),
    (E2M3, format_info_ocp_e2m3),
    (E2M1, format_info_ocp_e2m1),
]
NUMPY = [
    (E4M3FN, ml_dtypes.float8_e4m3fn),
    (E5M2, ml_dtypes.float8_e5m2),
    (E3M2, ml_dtypes.float6_e3m2fn),
    (E2M3, ml_dtypes.float6_e2m3fn),
    (E2M1, ml_dtypes.float4_e2m1fn),
]
by_name = pytest.mark.parametrize("form", OURS, ids=lambda form: form.name)


def hard_cases(form):
    """Every number, every midpoint, both neighbours of each midpoint, and numbers far inside and outside."""
    grid = form.values(torch.float64)
    grid = grid[grid.isfinite()].sort().values
    middle = (grid[1:] + grid[:-1]) / 2
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(500, generator=generator, dtype=torch.float64)
    scales = (form.max / 2, 1.0, form.smallest * 2, form.smallest / 1000)
    return torch.cat(
        [grid, middle, middle * (1 + 2**-50), middle * (1 - 2**-50), *(noise * scale for scale in scales)]
    )


@pytest.mark.parametrize(("form", "peer"), GFLOAT, ids=lambda form: form.name)
def test_every_code_stands_for_what_gfloat_says(form, peer):
    expected = [gfloat.decode_float(peer, code).fval for code in range(2**form.bits)]
    np.testing.assert_array_equal(form.values(torch.float64), np.array(expected))


@pytest.mark.parametrize(("form", "peer"), NUMPY, ids=lambda form: str(form))
def test_every_code_stands_for_what_ml_dtypes_says(form, peer):
    expected = np.arange(2**form.bits, dtype=np.uint8).view(peer).astype(np.float64)
    np.testing.assert_array_equal(form.values(torch.float64), expected)


@pytest.mark.parametrize(
    ("rounding", "mode"), [("nearest_even", RoundMode.TiesToEven), ("half_away", RoundMode.TiesToAway)]
)
@pytest.mark.parametrize(("form", "peer"), GFLOAT, ids=lambda form: form.name)
def test_rounds_as_gfloat_bit_for_bit(form, peer, rounding, mode):
    x = hard_cases(form)
    expected = [gfloat.round_float(peer, float(value), mode, sat=True) for value in x]
    rounded = form.round(x, rounding)
    assert torch.equal(rounded, torch.tensor(expected, dtype=torch.float64))
    codes = [int(gfloat.encode_float(peer, float(value))) for value in expected]
    assert torch.equal(form.encode(x, rounding), torch.tensor(codes, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("form", "dtype"), [(E4M3FN, torch.float8_e4m3fn), (E5M2, torch.float8_e5m2)], ids=["e4m3fn", "e5m2"]
)
def test_rounds_a_million_float32_of_all_magnitudes_as_torch(form, dtype):
    bits = torch.randint(
        -(2**31), 2**31, (1 << 20,), generator=torch.Generator().manual_seed(0), dtype=torch.int64
    )
    x = bits.to(torch.int32).view(torch.float32)
    x = x[x.isfinite()].clamp(-form.max, form.max)
    expected = x.to(dtype)
    assert torch.equal(form.round(x), expected.float())
    assert torch.equal(form.encode(x), expected.view(torch.uint8))


@by_name
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("rounding", ["nearest_even", "half_away", "away_from_zero"])
def test_narrow_dtypes_give_what_float64_gives(form, dtype, rounding):
    x = hard_cases(form).to(dtype)
    assert torch.equal(form.round(x, rounding).double(), form.round(x.double(), rounding))
    assert form.round(x, rounding).dtype == dtype
    assert torch.equal(form.encode(x, rounding), form.encode(x.double(), rounding))


@by_name
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_code_comes_back(form, dtype):
    codes = torch.arange(2**form.bits, dtype=torch.uint8)
    values = form.decode(codes, dtype)
    finite = values.isfinite()
    assert torch.equal(form.encode(values[finite]), codes[finite])


@by_name
def test_rounding_away_is_the_next_number_outwards(form):
    x = hard_cases(form)
    grid = form.values(torch.float64)
    grid = grid[grid.isfinite() & (grid >= 0)].unique()
    place = torch.searchsorted(grid, x.abs().clamp(max=form.max))
    assert torch.equal(form.round(x, "away_from_zero"), grid[place].copysign(x))


@given(st.floats(allow_nan=False), st.sampled_from(OURS))
def test_what_is_rounded_is_a_nearest_number(x, form):
    grid = form.values(torch.float64)
    grid = grid[grid.isfinite()]
    found = form.round(torch.tensor(x, dtype=torch.float64)).item()
    x = min(max(x, -form.max), form.max)
    assert abs(found - x) == (grid - x).abs().min().item()


@by_name
def test_stochastic_rounding_is_unbiased_and_takes_neighbours_only(form):
    generator = torch.Generator().manual_seed(0)
    draws = 100_000
    # In the subnormals, at the seam of the subnormals, right above and below a power of two, near the largest.
    points = [0.3, 2.0**form.mantissa_bits - 0.25, 2.0**form.mantissa_bits + 0.6, 0.01]
    points = [point * form.smallest for point in points] + [0.99 * form.max]
    grid = form.values(torch.float64)
    grid = grid[grid.isfinite()].unique()
    for point in points:
        x = torch.full((draws,), point, dtype=torch.float64)
        rounded = form.round(x, "stochastic", generator)
        lower, upper = grid[grid <= point].max(), grid[grid >= point].min()
        assert set(rounded.unique().tolist()) <= {lower.item(), upper.item()}
        share = (point - lower) / (upper - lower)
        deviation = (upper - lower) * (share * (1 - share) / draws).sqrt()
        assert abs(rounded.mean() - point) <= 4 * deviation
        assert torch.equal(form.round(-x, "stochastic", generator).unique(), -rounded.unique().flip(0))


@by_name
def test_stochastic_rounding_leaves_the_grid_where_it_is(form):
    grid = form.values()
    grid = grid[grid.isfinite()]
    assert torch.equal(form.round(grid, "stochastic", torch.Generator().manual_seed(0)), grid)


def test_stochastic_rounding_repeats_with_its_generator_only():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    first = E4M3FN.encode(x, "stochastic", torch.Generator().manual_seed(5))
    torch.manual_seed(1)
    assert torch.equal(first, E4M3FN.encode(x, "stochastic", torch.Generator().manual_seed(5)))


def test_a_float64_next_to_a_tie_is_not_rounded_twice():
    # In float32 it is the tie 17, which would go to 16.
    x = torch.tensor([17.0 + 2**-40], dtype=torch.float64)
    assert E4M3FN.decode(E4M3FN.encode(x)).item() == 18.0


def test_nan_stays_where_the_format_has_one():
    x = torch.tensor([float("nan"), 1.0])
    assert E4M3FN.round(x).isnan().tolist() == [True, False]
    assert E4M3FN.decode(E4M3FN.encode(x.double())).isnan().tolist() == [True, False]
    with pytest.raises(NonFinite, match=r"1 of 2 .* first at \(0,\)"):
        E2M1.encode(x)


def test_infinity_becomes_the_largest_number():
    x = torch.tensor([float("inf"), -float("inf")])
    assert E5M2.round(x).tolist() == [57344.0, -57344.0]
    assert E5M2.decode(E5M2.encode(x)).tolist() == [57344.0, -57344.0]


def test_views_and_empty_tensors_are_rounded():
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(E3M2.encode(x.T[::2]), E3M2.encode(x.T[::2].contiguous()))
    assert E3M2.encode(torch.zeros(0, 4)).shape == E3M2.decode(torch.zeros(0, 4, dtype=torch.uint8)).shape


def test_integers_have_a_sign_and_a_magnitude():
    assert integer(4) == INT4
    assert INT4.values().tolist()[:8] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert INT8.max == 127
    assert torch.equal(INT4.values(), 2 * E1M2.values())


@pytest.mark.parametrize(
    "make",
    [
        lambda: FloatFormat("wide", 5, 3),
        lambda: FloatFormat("empty", 1, 0, reserved=2),
        lambda: FloatFormat("odd", 2, 1, infinite=True),
        lambda: FloatFormat("far", 4, 3, bias=-127),
        lambda: integer(9),
        lambda: named("e9m9"),
        lambda: E2M1.round(torch.zeros(1), "up"),
        lambda: E2M1.round(torch.zeros(1), "stochastic"),
        lambda: E2M1.round(torch.zeros(1, dtype=torch.int32)),
    ],
)
def test_what_is_no_format_or_rounding_is_refused(make):
    with pytest.raises(InvalidSetting):
        make()
