"""Models whose linear layers hold packed 4-bit weights, and quantise their inputs on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Self

import torch
from torch import Tensor, nn

from separata_kit_llm import Hook, patched

from .compute import linear
from .config import SKIPPED
from .errors import NothingToQuantise
from .gptq import gptq
from .quantizer import fake_quantize, quantize
from .rotation import rotate
from .tensor import MixFP4Tensor


class QuantizedLinear(nn.Module):
    """A linear layer on a packed weight; its buffers are named as compressed-tensors names them.

    Args:
        stored: The ``N x K`` weight.
        bias: N numbers.
        method: How inputs are quantised; None leaves them as they are.
        per_row: Whether each row of the input has its own tensor scale.
        rotation: Size of the Hadamard rotation that the weight went through, and each input goes through; 0 for none.
        seed: Of the rotation's signs.
    """

    def __init__(
        self,
        stored: MixFP4Tensor,
        bias: Tensor | None = None,
        *,
        method: str | None = "mixfp4",
        per_row: bool = False,
        rotation: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.out_features, self.in_features = stored.shape
        self.group, self.method, self.per_row = stored.group, method, per_row
        self.rotation, self.seed = rotation, seed
        self.register_buffer("weight_packed", stored.codes)
        self.register_buffer("weight_scale", stored.scales)
        self.register_buffer("weight_global_scale", stored.global_scale.reshape(1))
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), requires_grad=False)

    @classmethod
    def from_linear(
        cls,
        layer: nn.Linear,
        *,
        method: str = "mixfp4",
        activations: bool = True,
        per_row: bool = False,
        rotation: int = 0,
        seed: int = 0,
        hessian: Tensor | None = None,
        pad: bool = False,
    ) -> Self:
        """Quantise a linear layer.

        Args:
            layer: The layer.
            method: As for ``quantize``.
            activations: Whether inputs are quantised too.
            per_row: Whether each row of the input has its own tensor scale.
            rotation: Size of a Hadamard rotation before quantising; 0 for none.
            seed: Of the rotation's signs.
            hessian: Sum of ``x x^T`` over the (rotated) inputs, for GPTQ; else weights are rounded to nearest.
            pad: Whether to fill up the last block of a row.
        """
        weight = layer.weight.detach()
        weight = rotate(weight, rotation, seed) if rotation else weight
        stored = (
            quantize(weight, method=method, pad=pad)
            if hessian is None
            else gptq(weight, hessian, method=method)
        )
        inputs = method if activations else None
        return cls(stored, layer.bias, method=inputs, per_row=per_row, rotation=rotation, seed=seed)

    @property
    def stored(self) -> MixFP4Tensor:
        """The weight."""
        shape = torch.Size((self.out_features, self.in_features))
        buffers: Any = (self.weight_packed, self.weight_scale, self.weight_global_scale)
        return MixFP4Tensor(buffers[0], buffers[1], buffers[2].reshape(()), shape, self.group)

    def forward(self, x: Tensor) -> Tensor:
        """``x @ W.T + bias``, for a ``... x K`` tensor."""
        x = rotate(x, self.rotation, self.seed) if self.rotation else x
        return linear(x, self.stored, self.bias, method=self.method, per_row=self.per_row)

    def extra_repr(self) -> str:
        """What stands in the model's printed form."""
        inputs = self.method or "as they are"
        return f"in_features={self.in_features}, out_features={self.out_features}, inputs={inputs}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # The model's dtype is not that of the scale: in half precision it would be another number.
        scale: Any = self._buffers["weight_global_scale"]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        packed: Any = self.weight_packed
        self._buffers["weight_global_scale"] = (
            scale.to(packed.device) if scale.device.type != "meta" else fn(scale)
        )
        return self


def quantize_model(
    model: nn.Module,
    *,
    weights: bool = True,
    activations: bool = True,
    skip: Iterable[str] = SKIPPED,
    method: str = "mixfp4",
    per_row: bool = False,
    rotation: int = 0,
    seed: int = 0,
    calibration: Tensor | None = None,
    pad: bool = False,
) -> nn.Module:
    """Replace each ``nn.Linear`` of a model, in place.

    Args:
        model: Any model.
        weights: Whether weights are stored in 4 bits; else only inputs are quantised (and rotation and calibration
            have no meaning).
        activations: Whether inputs are quantised, with a tensor scale taken from each input.
        skip: Names or patterns of layers that stay as they are.
        method: ``mixfp4``, ``nvfp4``, ``nvint4`` or ``fouroversix``.
        per_row: Whether each token has its own tensor scale.
        rotation: Size of a Hadamard rotation before quantising; 0 for none.
        seed: Of the rotation's signs.
        calibration: A ``batch x length`` tensor of token ids: weights are then quantised by GPTQ on the inputs that
            these give in the unquantised model.
        pad: Whether to fill up the last block of rows that are no multiple of 16.

    Returns:
        The model.

    Raises:
        NothingToQuantise: If no linear layer is left.
        GroupMismatch: If a layer's input width is no multiple of 16 and ``pad`` is not set.
    """
    layers = dict(linear_layers(model, skip))
    if not weights:
        for layer in layers.values():
            layer.register_forward_pre_hook(_quantised_input(method, per_row))
        return model
    hessians = {} if calibration is None else collect_hessians(model, layers, calibration, rotation, seed)
    # All are made before any is replaced: a layer that can't be leaves the model as it was.
    made = {
        name: QuantizedLinear.from_linear(
            layer,
            method=method,
            activations=activations,
            per_row=per_row,
            rotation=rotation,
            seed=seed,
            hessian=hessians.get(name),
            pad=pad,
        )
        for name, layer in layers.items()
    }
    for name, quantized in made.items():
        model.set_submodule(name, quantized)
    return model


def linear_layers(model: nn.Module, skip: Iterable[str] = SKIPPED) -> Iterator[tuple[str, nn.Linear]]:
    """Names and modules of the layers that are quantised.

    Args:
        model: Any model.
        skip: Names or patterns that stay out.
    """
    patterns, found = tuple(skip), False
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and not any(fnmatchcase(name, pattern) for pattern in patterns):
            found = True
            yield name, module
    if not found:
        raise NothingToQuantise(
            f"{type(model).__name__} has no nn.Linear besides {', '.join(patterns) or 'none'}",
            "give a model with linear layers, or skip fewer of them",
        )


@torch.no_grad()
def collect_hessians(
    model: nn.Module, layers: dict[str, nn.Linear], calibration: Tensor, rotation: int = 0, seed: int = 0
) -> dict[str, Tensor]:
    """Sums of ``x x^T`` over the inputs of layers.

    Args:
        model: The model, not quantised.
        layers: Layers by name.
        calibration: A ``batch x length`` tensor of token ids.
        rotation: Size of the rotation that inputs will go through.
        seed: Of its signs.

    Returns:
        A ``K x K`` float32 tensor for each name.
    """
    names = {id(layer): name for name, layer in layers.items()}
    sums: dict[str, Tensor] = {}

    def add(module: nn.Module, args: tuple[Tensor, ...], _kwargs: dict[str, Any]) -> None:
        x = args[0].flatten(0, -2).float()
        x = rotate(x, rotation, seed) if rotation else x
        name = names[id(module)]
        sums[name] = x.T @ x if name not in sums else sums[name].addmm_(x.T, x)

    with patched(model, Hook(lambda name, _: name in layers, add, when="before")):
        for sequence in calibration:
            model(sequence[None])
    return sums


def _quantised_input(method: str, per_row: bool) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    def before(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (fake_quantize(args[0], method=method, per_row=per_row), *args[1:])

    return before
