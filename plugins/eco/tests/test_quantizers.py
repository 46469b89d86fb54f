from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_eco import QuantizedParameter, quantizer
from separata_eco.errors import InvalidSetting, ShapeMismatch

NAMES = ["fp8_e4m3", "fp8_e4m3:tensor", "int8", "int4", "int4:32", "mixfp4", "nvfp4"]


@pytest.mark.parametrize("name", NAMES)
def test_the_label_makes_the_same_one_again(name: str) -> None:
    chosen = quantizer(name)
    assert quantizer(chosen.label) == chosen


def test_frozen_scales_are_in_the_label() -> None:
    chosen = quantizer("int4", 64, frozen=True)
    assert quantizer(chosen.label) == chosen
    assert chosen.label == "int4:64:frozen"


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**30), exponent=st.integers(-20, 20))
def test_what_is_stored_is_on_its_grid(name: str, seed: int, exponent: int) -> None:
    """Stored again to nearest, with the scales it has, nothing moves."""
    x = torch.randn(3, 128, generator=torch.Generator().manual_seed(seed)) * 2.0**exponent
    chosen = quantizer(name, frozen=name[:4] in ("fp8_", "int8", "int4"))
    weight = QuantizedParameter.from_dense(x, chosen)
    stored = weight.dequantize()
    torch.testing.assert_close(weight.store_(stored), stored, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_stochastic_rounding_is_unbiased(name: str, generator: torch.Generator) -> None:
    draws = 2000
    x = torch.randn(1, 128, generator=generator).expand(draws, 128)
    chosen = quantizer(name)
    every = chosen.dequantize(chosen.quantize(x, "stochastic", generator), x.shape, torch.float32).double()
    error = (every.mean(0) - x[0].double()).abs()
    # A neighbour that is drawn less than once in all draws shows in no variance; no step is larger than this.
    step = x[0].abs().max() / (127 if name == "int8" else 4)
    assert (error <= 4.5 * every.std(0) / draws**0.5 + 8 * step / draws).all()
    assert error.mean() < every.std(0).mean() / draws**0.5 * 1.2


@pytest.mark.parametrize("name", ["fp8_e4m3", "int4"])
def test_draws_are_neighbours(name: str, generator: torch.Generator) -> None:
    x = torch.tensor([[1.0, *torch.rand(127, generator=generator).tolist()]])
    chosen = quantizer(name)
    draws = torch.stack(
        [
            chosen.dequantize(chosen.quantize(x, "stochastic", generator), x.shape, torch.float32)
            for _ in range(200)
        ]
    )
    assert all(len(draws[:, 0, i].unique()) <= 2 for i in range(128))
    assert ((draws.amin(0) <= x * (1 + 1e-6)) & (draws.amax(0) >= x * (1 - 1e-6)) | (draws.std(0) == 0)).all()


def test_frozen_scales_stay_and_cut_off() -> None:
    weight = QuantizedParameter.from_dense(torch.ones(2, 128), quantizer("int4", frozen=True))
    scales = weight.parts["scales"].clone()
    assert torch.equal(weight.store_(torch.full((2, 128), 5.0)), torch.ones(2, 128))
    assert torch.equal(weight.parts["scales"], scales)


def test_scales_follow_the_weights() -> None:
    weight = QuantizedParameter.from_dense(torch.ones(2, 128), quantizer("int4"))
    torch.testing.assert_close(weight.store_(torch.full((2, 128), 5.0)), torch.full((2, 128), 5.0))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fp4", {}),
        ("int4", {"granularity": "column"}),
        ("int4", {"granularity": 0}),
        ("mixfp4", {"granularity": 32}),
        ("nvfp4", {"frozen": True}),
    ],
)
def test_unknown_settings_are_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        quantizer(name, **options)


@pytest.mark.parametrize(("name", "columns"), [("int4", 100), ("mixfp4", 24), ("int4:row", 33)])
def test_rows_that_groups_do_not_divide_are_refused(name: str, columns: int) -> None:
    with pytest.raises(ShapeMismatch, match=str(columns)):
        QuantizedParameter.from_dense(torch.ones(2, columns), quantizer(name))
