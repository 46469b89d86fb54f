"""Each check of a kernel catches the fault it is for, and no other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separata.testing.conformance import Case
from separata.testing.examples import KernelExample
from separata.testing.kernels import CHECKS, KernelSubject


def scaled(x: Tensor, y: Tensor) -> Tensor:
    """A right kernel: elementwise products."""
    return x * y


def example(**changes: Any) -> KernelExample:
    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        first, second = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64).to(dtype)
        return first, second

    given = {
        "inputs": inputs,
        "empty": lambda dtype: (torch.empty(0, 4, dtype=dtype), torch.empty(0, 4, dtype=dtype)),
        "differentiable": True,
    }
    return KernelExample(**{**given, **changes})


def failures(kernel: Any, **changes: Any) -> list[str]:
    subject = KernelSubject(kernel, scaled, example(**changes))
    return [check.name for check in CHECKS if Case("kernel", "toy", check, subject).run().state == "failed"]


def wrong_fast_path(x: Tensor, y: Tensor) -> Tensor:
    return x * y * 1.01


def reads_memory_not_strides(x: Tensor, y: Tensor) -> Tensor:
    if x.is_contiguous():
        return x * y
    flat = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    return flat[: x.numel()].view(x.shape) * y


def fails_on_empty(x: Tensor, y: Tensor) -> Tensor:
    if not x.numel():
        raise IndexError("nothing there")
    return x * y


def changes_its_argument(x: Tensor, y: Tensor) -> Tensor:
    result = x * y
    with torch.no_grad():
        x.detach()[..., :1].fill_(5.0)
    return result


def drops_the_dtype(x: Tensor, y: Tensor) -> Tensor:
    return (x.double() * y.double()).float() if x.dtype == torch.float64 and not x.requires_grad else x * y


def draws_from_the_global_state(x: Tensor, y: Tensor) -> Tensor:
    torch.rand(())
    return x * y


class WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, _ = ctx.saved_tensors
        return grad * x, grad * x


@pytest.mark.parametrize(
    ("kernel", "caught"),
    [
        (scaled, []),
        (wrong_fast_path, ["agrees-with-reference"]),
        (reads_memory_not_strides, ["takes-strided-tensors"]),
        (fails_on_empty, ["takes-empty-tensors"]),
        (draws_from_the_global_state, ["hides-no-randomness"]),
        (WrongBackward.apply, ["has-right-gradients"]),
    ],
)
def test_a_fault_fails_exactly_its_check(kernel: Any, caught: list[str]) -> None:
    assert failures(kernel) == caught


def test_a_change_in_place_fails_exactly_its_check() -> None:
    assert failures(changes_its_argument, differentiable=False) == ["leaves-arguments-unchanged"]


def test_a_lost_dtype_fails_exactly_its_check() -> None:
    # float32's tolerance, so that the lost digits themselves are no second fault.
    loose = {"float64": (1e-5, 1e-5)}
    assert failures(drops_the_dtype, tolerances=loose) == ["keeps-dtype-and-device"]


def test_a_kernel_without_reference_fails() -> None:
    subject = KernelSubject(scaled, None, example())
    with pytest.raises(Exception, match="names no reference"):
        CHECKS[0].run(subject)


def test_hidden_seed_that_changes_the_result_is_caught() -> None:
    def noisy(x: Tensor, y: Tensor) -> Tensor:
        return x * y + 1e-9 * torch.rand(x.shape, dtype=x.dtype)

    assert "hides-no-randomness" in failures(noisy, differentiable=False)
