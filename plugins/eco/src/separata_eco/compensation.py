"""Where the error of rounding a weight goes: into the momentum, into a copy, or nowhere.

A step takes the weight w to ``w' = k w - s m / d`` with k = 1 - lr * weight_decay; q rounds w' and e is what it lost.
A run with master weights keeps ``w'``, so at the next step its momentum is ahead of one that starts from ``q(w')`` by
``k e d / s``. ECO puts that into the momentum at once, divided by -beta for the step to come, and takes back what the
last error's part has become; since the last error is gone, the new one stands for it (ECO, Algorithm 3):

    m <- m + (1 - 1 / beta) (k d / s) e

Seen alone, an error e comes back as ``(1 - beta) e (1 + beta + beta^2 + ...) = e``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import torch
from torch import Tensor

from .parameter import QuantizedParameter

Compensation: TypeAlias = Literal["eco", "none", "exact", "master"]
"""What becomes of the rounding error.

``eco``: it is carried by the momentum; nothing else is kept. ``none``: it is lost. ``exact``: the same with both errors
and the step they belong to, which needs a copy of the error and reproduces ``master``. ``master``: weights are kept in
full precision beside their codes. The last three are what ECO is compared with.
"""


@attrs.frozen
class Move:
    """One step of an optimizer as the map ``w <- keep w - size m / denominator``.

    Args:
        keep: ``1 - lr * weight_decay``.
        size: Learning rate, with the correction of the first moment's bias.
        denominator: A tensor of the weight's shape, or None for 1.
        beta: Decay of the momentum.
        lr: Learning rate of this step.
    """

    keep: float
    size: float
    denominator: Tensor | None
    beta: float
    lr: float

    def apply_(self, weight: Tensor, momentum: Tensor) -> Tensor:
        """Move a weight in place."""
        weight.mul_(self.keep)
        if self.denominator is None:
            return weight.add_(momentum, alpha=-self.size)
        return weight.addcdiv_(momentum, self.denominator, value=-self.size)

    def inject_(self, momentum: Tensor, error: Tensor, factor: float = 1.0) -> Tensor:
        """Add ``factor`` times the momentum that moves the weight by ``keep * error``."""
        value = factor * self.keep / self.size
        if self.denominator is None:
            return momentum.add_(error, alpha=value)
        return momentum.addcmul_(error, self.denominator, value=value)


def begin(kind: Compensation, weight: QuantizedParameter, state: dict[str, Any], dtype: torch.dtype) -> None:
    """Make what a way of compensation keeps: the master weights, or the last error.

    Args:
        kind: What becomes of the error.
        weight: The stored weight.
        state: The optimizer's state of it.
        dtype: Of what is kept.
    """
    if kind == "master":
        state["master"] = weight.dequantize(dtype)
    elif kind == "exact":
        state["error"] = torch.zeros(weight.shape, dtype=dtype, device=weight.device)


def start(kind: Compensation, momentum: Tensor, move: Move, state: dict[str, Any]) -> None:
    """Before the step: exactly compensated, the momentum gets what the last error is worth at this step."""
    if kind == "exact":
        move.inject_(momentum, state["error"], -1.0)


def undo(kind: Compensation, momentum: Tensor, move: Move, state: dict[str, Any]) -> None:
    """Take back what ``start`` did: the momentum is that of the run with master weights again."""
    if kind == "exact":
        move.inject_(momentum, state["error"], 1.0)


def settle(
    kind: Compensation,
    moved: Tensor,
    stored: Tensor,
    momentum: Tensor,
    move: Move,
    state: dict[str, Any],
    least_lr: float = 0.0,
) -> None:
    """Do what is to be done with the error ``moved - stored``.

    Args:
        kind: What becomes of the error.
        moved: The weight after the step, before it was rounded; may be overwritten.
        stored: What was stored.
        momentum: Changed in place.
        move: The step.
        state: The optimizer's state of this weight.
        least_lr: The injected error is that of a learning rate of at least this.
    """
    if kind == "eco":
        reach = move.lr / max(move.lr, least_lr)
        move.inject_(momentum, moved.sub_(stored), reach * (1 - 1 / move.beta))
    elif kind == "exact":
        undo(kind, momentum, move, state)
        state["error"].copy_(moved.sub_(stored))
    elif kind == "master":
        state["master"].copy_(moved)
