"""Quantisation-aware training: the forward pass sees 4-bit numbers, the gradient passes straight through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .config import SKIPPED
from .model import linear_layers, quantize_model
from .quantizer import fake_quantize

_HANDLE = "_mixfp4_inputs"


def straight_through(x: Tensor, method: str = "mixfp4") -> Tensor:
    """``fake_quantize`` with the gradient of the identity: no element lies beyond its block's range.

    Args:
        x: A ``... x K`` floating tensor, K a multiple of 16.
        method: As for ``fake_quantize``.
    """
    quantised: Tensor = _StraightThrough.apply(x, method)  # type: ignore[no-untyped-call]
    return quantised


@attrs.frozen
class QATRecipe:
    """Train a model that will be quantised, with your own loop and optimizer.

    >>> from torch import nn
    >>> recipe = QATRecipe()
    >>> model = recipe.prepare(nn.Sequential(nn.Linear(32, 8)))
    >>> model(torch.randn(2, 32)).sum().backward()
    >>> type(recipe.convert(model)[0]).__name__
    'QuantizedLinear'

    Args:
        method: As for ``quantize_model``.
        activations: Whether inputs are quantised too.
        skip: Names or patterns of layers that stay as they are.
    """

    method: str = "mixfp4"
    activations: bool = True
    skip: tuple[str, ...] = attrs.field(default=SKIPPED, converter=tuple[str, ...])

    def prepare(self, model: nn.Module) -> nn.Module:
        """Let each linear layer see its weight and its input in 4 bits; parameters stay what they are.

        Args:
            model: The model; it is changed in place, and its optimizer is made afterwards.
        """
        for _, layer in list(linear_layers(model, self.skip)):
            parametrize.register_parametrization(layer, "weight", _Weight(self.method))
            if self.activations:
                layer.__dict__[_HANDLE] = layer.register_forward_pre_hook(self._input)
        return model

    def convert(self, model: nn.Module, **options: Any) -> nn.Module:
        """Take the recipe out again and quantise the trained weights.

        Args:
            model: A model that ``prepare`` changed.
            options: Further arguments of ``quantize_model``.
        """
        for _, layer in self._prepared(model):
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
            if _HANDLE in layer.__dict__:
                layer.__dict__.pop(_HANDLE).remove()
        return quantize_model(
            model, method=self.method, activations=self.activations, skip=self.skip, **options
        )

    def _prepared(self, model: nn.Module) -> Iterable[tuple[str, nn.Linear]]:
        return [
            (name, layer)
            for name, layer in linear_layers(model, self.skip)
            if parametrize.is_parametrized(layer, "weight")
        ]

    def _input(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (straight_through(args[0], self.method), *args[1:])


class _Weight(nn.Module):
    """The parametrisation of a weight."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def forward(self, weight: Tensor) -> Tensor:
        """What the layer multiplies with."""
        return straight_through(weight, self.method)


class _StraightThrough(torch.autograd.Function):
    """Rounding forwards, nothing backwards."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, method: str) -> Tensor:
        """The 4-bit numbers."""
        return fake_quantize(x, method=method)

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient as it is."""
        return gradients[0], None
