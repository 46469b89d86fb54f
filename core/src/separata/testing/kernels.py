"""What every kernel keeps: a pure function that agrees with its float64 reference."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import attrs
import torch
from torch import Tensor

from separata.records import Offer
from separata.registry import load_object

from .checks import CheckFailed, NotOffered, leaves, need, same, suite
from .examples import KernelExample

# (rtol, atol) of torch.testing: a few units in the last place of each format.
_TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}


@attrs.frozen
class KernelSubject:
    """A kernel on trial: the fast path, its reference if it has one, and inputs."""

    kernel: Callable[..., Any]
    reference: Callable[..., Any] | None
    example: KernelExample

    def arguments(self, dtype: str, seed: int = 0) -> tuple[Any, ...]:
        """The example's inputs in one dtype."""
        return self.example.inputs(torch.Generator().manual_seed(seed), getattr(torch, dtype))


def agrees_with_reference(subject: KernelSubject) -> None:
    """The fast path agrees with the float64 reference in every dtype."""
    reference = subject.reference
    if reference is None:
        raise CheckFailed("the offer names no reference")
    for dtype in subject.example.dtypes:
        arguments = subject.arguments(dtype)
        expected = reference(*_map(arguments, lambda t: t.double() if t.is_floating_point() else t))
        _need_close(subject, dtype, subject.kernel(*arguments), expected, "the reference")


def takes_strided_tensors(subject: KernelSubject) -> None:
    """Tensors that are not contiguous give what contiguous ones give."""
    for dtype in subject.example.dtypes:
        arguments = subject.arguments(dtype)
        strided = _map(arguments, _spread)
        _need_close(subject, dtype, subject.kernel(*strided), subject.kernel(*arguments), "contiguous input")


def takes_empty_tensors(subject: KernelSubject) -> None:
    """Empty input gives an empty result, not an error."""
    if subject.example.empty is None:
        raise NotOffered("the example says that empty input has no meaning")
    for dtype in subject.example.dtypes:
        subject.kernel(*subject.example.empty(getattr(torch, dtype)))


def leaves_arguments_unchanged(subject: KernelSubject) -> None:
    """No argument is changed in place."""
    for dtype in subject.example.dtypes:
        arguments = subject.arguments(dtype)
        before = deepcopy(arguments)
        subject.kernel(*arguments)
        need(same(before, arguments), f"in {dtype} it changes an argument in place")


def keeps_dtype_and_device(subject: KernelSubject) -> None:
    """Floating results have the dtype and device of the floating arguments."""
    if not subject.example.keeps_dtype:
        raise NotOffered("the example says that the dtype changes on purpose")
    for dtype in subject.example.dtypes:
        arguments = subject.arguments(dtype)
        device = next((t.device for t in leaves(arguments) if isinstance(t, Tensor)), torch.device("cpu"))
        for result in leaves(subject.kernel(*arguments)):
            if isinstance(result, Tensor) and result.is_floating_point():
                need(str(result.dtype) == f"torch.{dtype}", f"from {dtype} it makes {result.dtype}")
                need(result.device == device, f"from {device} it goes to {result.device}")


def hides_no_randomness(subject: KernelSubject) -> None:
    """Neither does the result depend on the global random state, nor the state on the call."""
    dtype = subject.example.dtypes[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = subject.kernel(*subject.arguments(dtype))
        torch.manual_seed(2)
        before = torch.get_rng_state()
        second = subject.kernel(*subject.arguments(dtype))
        need(same(first, second), "two calls on the same arguments differ with the global seed")
        need(torch.equal(before, torch.get_rng_state()), "a call moves the global random state")


def has_right_gradients(subject: KernelSubject) -> None:
    """The gradients agree with finite differences in float64."""
    if not subject.example.differentiable:
        raise NotOffered("the example promises no gradients")
    arguments = _map(
        subject.arguments("float64"), lambda t: t.requires_grad_() if t.is_floating_point() else t
    )
    try:
        torch.autograd.gradcheck(_floating(subject.kernel), arguments)
    except RuntimeError as error:
        need(False, f"gradcheck: {' '.join(str(error).split())[:200]}")


def subject(slug: str, offer: Offer, example: KernelExample) -> KernelSubject:
    """The kernel that an offer names, or that its example makes."""
    kernel = example.kernel() if example.kernel else load_object(offer.object, slug)
    return KernelSubject(kernel, load_object(offer.reference, slug) if offer.reference else None, example)


CHECKS = suite(
    agrees_with_reference,
    takes_strided_tensors,
    takes_empty_tensors,
    leaves_arguments_unchanged,
    keeps_dtype_and_device,
    hides_no_randomness,
    has_right_gradients,
)


def _map(arguments: tuple[Any, ...], function: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    def through(value: Any) -> Any:
        if isinstance(value, Tensor):
            return function(value)
        return type(value)(map(through, value)) if isinstance(value, tuple | list) else value

    return tuple(through(argument) for argument in arguments)


def _spread(tensor: Tensor) -> Tensor:
    """The same numbers with something else between them in memory."""
    return torch.stack([tensor, torch.full_like(tensor, 7)], dim=-1)[..., 0]


def _need_close(subject: KernelSubject, dtype: str, found: Any, expected: Any, what: str) -> None:
    """Fail unless results agree within the tolerance of their dtype; another layout may add in another order."""
    found, expected = leaves(found), leaves(expected)
    need(len(found) == len(expected), f"{len(found)} results, {what} has {len(expected)}")
    rtol, atol = subject.example.tolerances.get(dtype) or _TOLERANCES.get(dtype, _TOLERANCES["float32"])
    for one, other in zip(found, expected, strict=True):
        if not isinstance(one, Tensor):
            need(one == other, f"in {dtype} it gives {one!r}, {what} {other!r}")
            continue
        need(
            one.shape == other.shape,
            f"in {dtype} its shape is {tuple(one.shape)}, {what} {tuple(other.shape)}",
        )
        close = torch.allclose(one.double(), other.double(), rtol=rtol, atol=atol, equal_nan=True)
        need(close, f"in {dtype} it differs from {what} by {(one.double() - other.double()).abs().max():.3g}")


def _floating(kernel: Callable[..., Any]) -> Callable[..., tuple[Tensor, ...]]:
    def only_floating(*arguments: Any) -> tuple[Tensor, ...]:
        results = leaves(kernel(*arguments))
        return tuple(leaf for leaf in results if isinstance(leaf, Tensor) and leaf.is_floating_point())

    return only_floating
