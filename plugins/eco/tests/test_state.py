"""A stopped run goes on bit for bit, under accelerate, with schedules, and in shards."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from separata_eco import ECOSGD, ECOAdamW, QuantizedParameter, convert_, quantizer

Weight = Callable[..., QuantizedParameter]
X = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
Y = torch.arange(8) % 4


def network() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return convert_(nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 4)))


def fit(model: Any, optimizer: Any, steps: int, scheduler: Any = None) -> Tensor:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), Y).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return model(X)


@pytest.mark.parametrize("momentum_dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("cls", [ECOAdamW, ECOSGD])
def test_it_goes_on_bit_for_bit(cls: Any, momentum_dtype: str, tmp_path: Path) -> None:
    whole = network()
    expected = fit(whole, cls(whole.parameters(), lr=0.01, momentum_dtype=momentum_dtype), 10)
    half = network()
    optimizer = cls(half.parameters(), lr=0.01, momentum_dtype=momentum_dtype)
    fit(half, optimizer, 5)
    torch.save({"model": half.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "saved.pt")
    again = network()
    optimizer = cls(again.parameters(), lr=0.5, momentum_dtype=momentum_dtype, seed=7)
    saved = torch.load(tmp_path / "saved.pt", weights_only=True)
    again.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert torch.equal(fit(again, optimizer, 5), expected)


def test_draws_depend_on_the_seed_alone() -> None:
    runs = []
    for seed, outside in ((0, 1), (0, 2), (1, 1)):
        model = network()
        torch.manual_seed(outside)
        runs.append(fit(model, ECOAdamW(model.parameters(), lr=0.01, seed=seed), 5))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_under_accelerate_it_is_the_same(tmp_path: Path) -> None:
    plain = network()
    expected = fit(plain, ECOAdamW(plain.parameters(), lr=0.01), 6)
    accelerator = Accelerator(cpu=True)
    model = network()
    model, optimizer = accelerator.prepare(model, ECOAdamW(model.parameters(), lr=0.01))
    fit(model, optimizer, 3)
    accelerator.save_state(str(tmp_path))
    middle = deepcopy(model.state_dict())
    fit(model, optimizer, 3)
    accelerator.load_state(str(tmp_path))
    assert all(torch.equal(tensor, middle[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(fit(model, optimizer, 3), expected)


def test_schedules_that_begin_at_zero() -> None:
    model = network()
    optimizer = ECOAdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 3))
    before = model[0].weight.dequantize()
    fit(model, optimizer, 1, scheduler)
    assert torch.equal(model[0].weight.dequantize(), before)
    first = nn.functional.cross_entropy(model(X), Y)
    fit(model, optimizer, 20, scheduler)
    assert nn.functional.cross_entropy(model(X), Y) < 0.5 * first


def test_closures_are_called_with_gradients() -> None:
    model = network()
    optimizer = ECOAdamW(model.parameters(), lr=0.01)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X), Y)
        loss.backward()
        return loss

    assert optimizer.step(closure) > nn.functional.cross_entropy(model(X), Y)


def test_shards_of_rows_are_the_whole(weight: Weight) -> None:
    whole, gradient = weight(), torch.randn(6, 256)
    shards = [
        QuantizedParameter.from_dense(part, quantizer("fp8_e4m3")) for part in whole.dequantize().split(3)
    ]
    whole.grad = gradient
    for shard, part in zip(shards, gradient.split(3), strict=True):
        shard.grad = part.clone()
    for parameters in ([whole], shards):
        optimizer = ECOAdamW(parameters, lr=0.05, rounding="nearest_even")
        for _ in range(4):
            optimizer.step()
    assert torch.equal(whole.dequantize(), torch.cat([shard.dequantize() for shard in shards]))


def test_without_gradients_weight_and_momentum_settle(weight: Weight) -> None:
    made = weight()
    optimizer = ECOSGD([made], lr=0.05, rounding="nearest_even")
    made.grad = torch.randn(6, 256)
    optimizer.step()
    made.grad = torch.zeros(6, 256)
    for _ in range(300):
        optimizer.step()
    settled = made.dequantize()
    for _ in range(20):
        optimizer.step()
    # The momentum may carry each weight between neighbours of the grid, and no further.
    assert ((made.dequantize() - settled).abs() <= settled.abs() / 8 + 1e-2).all()
    assert optimizer.state[made]["momentum"].abs().max() * 0.05 < 0.5
