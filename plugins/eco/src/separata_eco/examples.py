"""Small inputs on which the conformance kit tries what ECO offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from separata.testing import EstimatorExample, SchedulerExample

from .drift import ErrorDrift
from .errors import InvalidSetting
from .optimizers import ECOSGD, ECOAdamW, ErrorCompensating
from .parameter import QuantizedParameter
from .quantizers import quantizer

SHAPE = (4, 32)


class Driven:
    """An optimizer with the weight it moves: gradients go in, weights come out."""

    def __init__(self, make: Callable[[list[Tensor]], ErrorCompensating]) -> None:
        start = torch.linspace(-1, 1, 128).view(SHAPE)
        self.weight = QuantizedParameter.from_dense(start, quantizer("fp8_e4m3"))
        self.optimizer = make([self.weight])

    def step(self, observation: Tensor) -> Tensor:
        """Take one step along a gradient and return the weight."""
        if observation.shape != SHAPE or not bool(observation.isfinite().all()):
            raise InvalidSetting("a gradient of another shape, or not finite", f"give {SHAPE} finite numbers")
        self.weight.grad = observation
        self.optimizer.step()
        return self.weight.dequantize()

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state and the weight's codes and scales."""
        return {"optimizer": self.optimizer.state_dict(), "weight": dict(self.weight.parts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.weight._adopt(state["weight"])


def adamw() -> SchedulerExample:
    """AdamW along eight gradients."""
    return _driven(lambda params: ECOAdamW(params, lr=0.05))


def sgd() -> SchedulerExample:
    """SGD along eight gradients."""
    return _driven(lambda params: ECOSGD(params, lr=0.05, weight_decay=0.1))


def error_drift() -> EstimatorExample:
    """A linear layer, and five batches of inputs and targets."""
    layer = nn.Linear(32, 4, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.linspace(-1, 1, 128).view(SHAPE))

    def data(generator: torch.Generator) -> tuple[list[Tensor]]:
        return ([torch.randn(8, 32, generator=generator) for _ in range(5)],)

    def make() -> ErrorDrift:
        return ErrorDrift(layer, _square)

    return EstimatorExample(
        make=make,
        data=data,
        bad=(([],), ([torch.zeros(8, 32)],)),
        expected_failures={"leaves-parameters-alone": "a module equals only itself, never a copy of it"},
    )


def _square(model: nn.Module, x: Tensor) -> Tensor:
    loss: Tensor = (model(x) - 1).square().mean()
    return loss


def _driven(make: Callable[[list[Tensor]], ErrorCompensating]) -> SchedulerExample:
    def observations(generator: torch.Generator) -> list[Tensor]:
        return [torch.randn(SHAPE, generator=generator) for _ in range(8)]

    return SchedulerExample(
        make=lambda: Driven(make),
        observations=observations,
        bad=(torch.full(SHAPE, torch.nan), torch.zeros(3)),
    )
