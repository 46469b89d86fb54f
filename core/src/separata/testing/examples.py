"""What the conformance kit is given to try an offer on: how to make it, and small inputs for it.

An offer names a function that returns one of these; it is called only when the kit runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from separata.estimates import Estimate


@attrs.frozen(kw_only=True)
class Example:
    """What examples of every kind may say.

    Args:
        expected_failures: Name of a check to the reason why it can't pass. One that passes all the same fails the
            report, so that the reason is removed with the fault.
    """

    expected_failures: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class KernelExample(Example):
    """Small inputs for a kernel.

    Args:
        inputs: Makes one tuple of arguments from a generator and a floating dtype; the kit calls it again for
            each dtype. Tensors that are not floating keep their own dtypes.
        kernel: Makes the kernel; the offer's object itself if None.
        dtypes: Names of the floating dtypes that the kernel takes.
        tolerances: Dtype name to (rtol, atol) against the reference; ``torch.testing``'s own if not given.
        empty: Makes arguments with nothing in them, such as a batch of none; None if that has no meaning.
        differentiable: Whether gradients are promised, and checked in float64.
        keeps_dtype: Whether floating results have the dtype of the arguments; a quantiser's have not.
    """

    inputs: Callable[[torch.Generator, torch.dtype], tuple[Any, ...]]
    kernel: Callable[[], Callable[..., Any]] | None = None
    dtypes: Sequence[str] = ("float32", "float64")
    tolerances: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)
    empty: Callable[[torch.dtype], tuple[Any, ...]] | None = None
    differentiable: bool = False
    keeps_dtype: bool = True


@attrs.frozen(kw_only=True)
class ModelExample(Example):
    """A small config of a model, and arguments for its ``forward``.

    Args:
        config: An instance of the offer's config class.
        inputs: Makes the arguments of ``forward`` from a generator.
    """

    config: Any
    inputs: Callable[[torch.Generator], tuple[Tensor, ...]]


@attrs.frozen(kw_only=True)
class TrainerExample(Example):
    """A training small enough for two cores.

    Args:
        fit: ``fit(folder, steps, batch_size, resume)`` trains in float64 up to a step, leaves a checkpoint in the
            folder after each step and returns the parameters by name; with ``resume`` it goes on from the folder's
            last checkpoint, or begins if there is none. Under a launcher each process takes its share of the batch.
        loss: The loss of those parameters.
        steps: How many steps make the loss fall.
        batch_size: Samples a step, over all processes; even.
    """

    fit: Callable[[Path, int, int, bool], dict[str, Tensor]]
    loss: Callable[[dict[str, Tensor]], float]
    steps: int = 8
    batch_size: int = 4


@attrs.frozen(kw_only=True)
class EstimatorExample(Example):
    """Small data for an estimator.

    Args:
        make: Makes an estimator that is not fitted.
        data: Makes the arguments of ``fit`` from a generator.
        bad: Arguments of ``fit`` that must be refused with a ValueError.
        inference: Draws data anew from a generator and returns the estimate with the true value; None if the
            estimator does not infer.
        level: The level at which the intervals are held against the truth.
        draws: How many draws the coverage is measured on.
    """

    make: Callable[[], Any]
    data: Callable[[torch.Generator], tuple[Any, ...]]
    bad: Sequence[tuple[Any, ...]] = ()
    inference: Callable[[torch.Generator], tuple[Estimate, float]] | None = None
    level: float = 0.95
    draws: int = 500


@attrs.frozen(kw_only=True)
class SchedulerExample(Example):
    """A short run of a scheduler.

    Args:
        make: Makes a scheduler at its beginning.
        observations: Makes the observations of one run from a generator; at least four.
        bad: Observations that must be refused with a ValueError.
    """

    make: Callable[[], Any]
    observations: Callable[[torch.Generator], Sequence[Any]]
    bad: Sequence[Any] = ()
