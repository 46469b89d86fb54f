"""What both optimizers keep: they are torch's without rounding, and master weights' with exact compensation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separata_eco import ECOSGD, ECOAdamW, QuantizedParameter
from separata_eco.errors import InvalidSetting, NotSupported, SparseGradient

Weight = Callable[..., QuantizedParameter]
Descend = Callable[..., Tensor]
ADAMW = (ECOAdamW, {"weight_decay": 0.1, "betas": (0.8, 0.95)})
SGD = (ECOSGD, {"weight_decay": 0.1, "momentum": 0.8})
AVERAGED = (ECOSGD, {"weight_decay": 0.1, "momentum": 0.8, "dampening": 0.8})
NAMES = ["fp8_e4m3", "int8", "int4", "mixfp4", "nvfp4"]


def rates(step: int) -> float:
    """A warm-up from 0, then a cosine."""
    return 0.0 if step in (0, 7) else 0.02 * (1 + math.cos(step / 20))


class Unrounded:
    """Stores numbers as they are."""

    label = "unrounded"
    by_row = True

    def check(self, shape: torch.Size, name: str = "") -> None:
        """Take any shape."""

    def quantize(self, x: Tensor, *_: Any, **__: Any) -> dict[str, Tensor]:
        """Keep the numbers."""
        return {"codes": x.clone()}

    def dequantize(self, parts: Any, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """Give them back."""
        return parts["codes"].to(dtype, copy=True)


@pytest.mark.parametrize("rounding", ["stochastic", "nearest_even"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("cls", "options"), [ADAMW, SGD, AVERAGED])
def test_exact_compensation_is_the_run_with_master_weights(
    weight: Weight, descend: Descend, cls: Any, options: dict[str, Any], name: str, rounding: str
) -> None:
    found = []
    for compensation in ("exact", "master"):
        parameter = weight(name, torch.float64)
        optimizer = cls([parameter], compensation=compensation, rounding=rounding, **options)
        found.append(descend(optimizer, parameter, 25, rates))
    # Both form the same sums in another order: they differ by a few units of float64's last place.
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)
    assert (found[0] - weight(name, torch.float64).dequantize()).abs().max() > 0.1


@pytest.mark.parametrize("compensation", ["eco", "none"])
def test_others_are_not_the_run_with_master_weights(
    weight: Weight, descend: Descend, compensation: str
) -> None:
    found = []
    for kind in (compensation, "master"):
        parameter = weight(dtype=torch.float64)
        found.append(descend(ECOAdamW([parameter], compensation=kind), parameter, 60, rates))
    assert (found[0] - found[1]).abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("compensation", ["eco", "none"])
def test_without_rounding_it_is_torchs_adamw(descend: Descend, dtype: torch.dtype, compensation: str) -> None:
    start = torch.randn(6, 32, dtype=torch.float64).to(dtype)
    options = {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": 0.1}
    ours = QuantizedParameter.from_dense(start, Unrounded())
    theirs = nn.Parameter(start.clone())
    first = descend(ECOAdamW([ours], compensation=compensation, **options), ours, 30)
    second = descend(torch.optim.AdamW([theirs], **options, foreach=False), theirs, 30)
    assert torch.equal(first, second)


@pytest.mark.parametrize("dampening", [0.0, 0.3])
def test_without_rounding_it_is_torchs_sgd(descend: Descend, dampening: float) -> None:
    start = torch.randn(6, 32)
    options = {"lr": 0.02, "momentum": 0.8, "dampening": dampening}
    ours = QuantizedParameter.from_dense(start, Unrounded())
    theirs = nn.Parameter(start.clone())
    first = descend(ECOSGD([ours], **options), ours, 30)
    second = descend(torch.optim.SGD([theirs], **options, foreach=False), theirs, 30)
    assert torch.equal(first, second)


@pytest.mark.parametrize("maximize", [False, True])
def test_plain_parameters_get_torchs_step(descend: Descend, maximize: bool) -> None:
    start = torch.randn(6, 32)
    options = {"lr": 0.02, "weight_decay": 0.1, "maximize": maximize}
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    first = descend(ECOAdamW([ours], **options), ours, 30)
    assert torch.equal(first, descend(torch.optim.AdamW([theirs], **options, foreach=False), theirs, 30))


def test_maximize_is_the_other_sign(weight: Weight) -> None:
    up, down = weight(), weight()
    gradient = torch.randn(6, 256)
    up.grad, down.grad = gradient, -gradient
    ECOAdamW([up], lr=0.1, maximize=True).step()
    ECOAdamW([down], lr=0.1).step()
    assert torch.equal(up.dequantize(), down.dequantize())


@pytest.mark.parametrize(("cls", "options"), [ADAMW, SGD])
def test_one_step_by_hand(weight: Weight, cls: Any, options: dict[str, Any]) -> None:
    """Scalars written out as in the paper, for one step and the injection after it."""
    parameter = weight(dtype=torch.float64)
    before, gradient = parameter.dequantize(), torch.randn(6, 256, dtype=torch.float64)
    parameter.grad = gradient
    lr, decay = 0.05, 0.1
    optimizer = cls([parameter], lr=lr, rounding="nearest_even", **options)
    optimizer.step()
    beta = 0.8
    if cls is ECOSGD:
        momentum, scale = gradient, torch.ones(())
    else:
        momentum = (1 - beta) * gradient
        scale = (1 - beta) * ((0.05 * gradient**2 / 0.05).sqrt() + 1e-8)
    moved = (1 - lr * decay) * before - lr * momentum / scale
    error = moved - parameter.dequantize()
    injected = (1 - lr * decay) / lr * (1 - 1 / beta) * scale * error
    assert error.abs().max() > 1e-3
    torch.testing.assert_close(optimizer.state[parameter]["momentum"], momentum + injected)


def test_an_error_comes_back_whole(weight: Weight) -> None:
    """Without gradients and without further rounding the momentum moves the weight by the first error."""
    parameter = QuantizedParameter.from_dense(torch.randn(4, 8, dtype=torch.float64), Unrounded())
    start, error, beta, lr = parameter.dequantize(), torch.rand(4, 8, dtype=torch.float64), 0.7, 0.1
    optimizer = ECOSGD([parameter], lr=lr, momentum=beta)
    optimizer.state[parameter].update(step=1, momentum=(1 - 1 / beta) / lr * error)
    for _ in range(200):
        parameter.grad = torch.zeros_like(error)
        optimizer.step()
    torch.testing.assert_close(parameter.dequantize() - start, error)


@pytest.mark.parametrize(("cls", "options"), [ADAMW, SGD])
def test_at_rate_zero_nothing_moves_and_nothing_is_injected(
    weight: Weight, cls: Any, options: dict[str, Any]
) -> None:
    parameter = weight()
    codes = parameter.parts["codes"].clone()
    parameter.grad = torch.ones(6, 256)
    optimizer = cls([parameter], lr=0.0, **options)
    optimizer.step()
    assert torch.equal(parameter.parts["codes"], codes)
    expected = 1.0 if cls is ECOSGD else 0.2
    torch.testing.assert_close(optimizer.state[parameter]["momentum"], torch.full((6, 256), expected))


def test_small_rates_inject_no_more_than_they_are_allowed(weight: Weight) -> None:
    sizes = []
    for least in (0.0, 1e-2):
        parameter = weight()
        parameter.grad = torch.full((6, 256), 1e-3)
        optimizer = ECOSGD([parameter], lr=1e-4, min_lr_injection=least, rounding="nearest_even")
        optimizer.step()
        sizes.append((optimizer.state[parameter]["momentum"] - 1e-3).abs().sum())
    torch.testing.assert_close(sizes[0] / sizes[1], torch.tensor(100.0), rtol=1e-3, atol=0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_skips_the_tensor(weight: Weight, bad: float) -> None:
    hit, other = weight(), weight(seed=1)
    optimizer = ECOAdamW([hit, other], lr=0.1)
    hit.grad, other.grad = torch.ones(6, 256), torch.ones(6, 256)
    hit.grad[2, 3] = bad
    before = [hit.parts["codes"].clone(), other.parts["codes"].clone()]
    optimizer.step()
    assert torch.equal(hit.parts["codes"], before[0])
    assert not torch.equal(other.parts["codes"], before[1])
    assert optimizer.skipped_steps == 1
    hit.grad = torch.ones(6, 256)
    optimizer.step()
    assert hit.dequantize().isfinite().all()
    assert not torch.equal(hit.parts["codes"], before[0])


@pytest.mark.parametrize("compensation", ["eco", "none", "exact", "master"])
def test_a_weight_that_would_overflow_stays(weight: Weight, compensation: str) -> None:
    parameter = weight()
    before = parameter.dequantize()
    optimizer = ECOSGD([parameter], lr=1e30, compensation=compensation)
    parameter.grad = torch.full((6, 256), 1e30)
    optimizer.step()
    assert torch.equal(parameter.dequantize(), before)
    assert optimizer.skipped_steps == 1


def test_a_momentum_of_two_bytes(weight: Weight, descend: Descend) -> None:
    parameter = weight()
    optimizer = ECOAdamW([parameter], lr=0.02, momentum_dtype="bfloat16")
    found = descend(optimizer, parameter, 200)
    assert optimizer.state[parameter]["momentum"].dtype == torch.bfloat16
    reference = weight()
    expected = descend(ECOAdamW([reference], lr=0.02), reference, 200)
    # Gradient noise alone leaves about 0.1 around the optimum.
    assert (found - expected).abs().mean() < 0.1


@pytest.mark.parametrize(
    ("cls", "options", "error"),
    [
        (ECOAdamW, {"betas": (0.0, 0.999)}, InvalidSetting),
        (ECOAdamW, {"betas": (0.9, 1.0)}, InvalidSetting),
        (ECOAdamW, {"lr": -1.0}, InvalidSetting),
        (ECOAdamW, {"lr": math.nan}, InvalidSetting),
        (ECOAdamW, {"rounding": "down"}, InvalidSetting),
        (ECOAdamW, {"compensation": "shadow"}, InvalidSetting),
        (ECOAdamW, {"momentum_dtype": "int8"}, InvalidSetting),
        (ECOAdamW, {"amsgrad": True}, NotSupported),
        (ECOSGD, {"momentum": 0.0}, InvalidSetting),
        (ECOSGD, {"momentum": 1.0}, InvalidSetting),
        (ECOSGD, {"nesterov": True}, NotSupported),
    ],
)
def test_options_out_of_range_are_refused(
    weight: Weight, cls: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        cls([weight()], **options)
    with pytest.raises(error):
        cls([{"params": [weight()], **options}])


def test_sparse_gradients_are_refused() -> None:
    table = nn.Embedding(8, 4, sparse=True)
    optimizer = ECOAdamW(table.parameters())
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(SparseGradient):
        optimizer.step()


@pytest.mark.parametrize("compensation", ["eco", "none", "exact", "master"])
def test_large_weights_are_updated_in_pieces(
    weight: Weight, descend: Descend, monkeypatch: pytest.MonkeyPatch, compensation: str
) -> None:
    options = {"compensation": compensation, "rounding": "nearest_even"}
    whole, cut = weight(), weight()
    expected = descend(ECOAdamW([whole], **options), whole, 5)
    monkeypatch.setattr(QuantizedParameter.pieces, "__defaults__", (512,))
    assert len(list(cut.pieces())) == 3
    assert torch.equal(descend(ECOAdamW([cut], **options), cut, 5), expected)
