"""A parameter whose only storage is codes and scales; it becomes numbers where it is used, and is stored again.

>>> import torch
>>> weight = QuantizedParameter.from_dense(torch.randn(4, 64), quantizer("fp8_e4m3"))
>>> weight.shape, weight.nbytes
(torch.Size([4, 64]), 272)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils import _pytree as pytree

from separata_mixfp4.formats import Rounding

from .errors import InvalidSetting
from .quantizers import Quantizer, quantizer

aten = torch.ops.aten
PIECE = 1 << 16


class QuantizedParameter(Tensor):
    """Codes and scales that take the place of a module's weight.

    Any function sees the numbers they stand for. ``torch.nn.functional.linear`` remembers only the codes for the
    backward pass, so that no dense copy outlives a layer's own product. The gradient is that at those numbers, a
    plain tensor. ``store_`` writes new numbers; nothing else changes it.

    Args:
        parts: What the quantiser stores: uint8 codes, scales.
        shape: Of the weight.
        quantizer: What made the parts.
        dtype: In which the numbers are used.
    """

    parts: dict[str, Tensor]
    quantizer: Quantizer

    @staticmethod
    def __new__(
        cls, parts: Mapping[str, Tensor], shape: torch.Size, quantizer: Quantizer, dtype: torch.dtype
    ) -> QuantizedParameter:
        """Make a tensor that has a shape and no storage of its own."""
        made: QuantizedParameter = Tensor._make_wrapper_subclass(
            cls, shape, dtype=dtype, device=parts["codes"].device, requires_grad=False
        )
        made.parts, made.quantizer = dict(parts), quantizer
        return made

    @classmethod
    def from_dense(
        cls, x: Tensor, quantizer: Quantizer, rounding: Rounding = "nearest_even", **draws: Any
    ) -> QuantizedParameter:
        """Quantise a floating tensor; the result is an ``nn.Parameter``, too."""
        quantizer.check(x.shape)
        made: QuantizedParameter = nn.Parameter(  # type: ignore[assignment]
            cls(quantizer.quantize(x.detach(), rounding, **draws), x.shape, quantizer, x.dtype)
        )
        return made

    def dequantize(self, dtype: torch.dtype | None = None) -> Tensor:
        """The numbers, in the parameter's own dtype if not given: a new plain tensor without gradient."""
        return self.quantizer.dequantize(self.parts, self.shape, dtype or self.dtype)

    @torch.no_grad()
    def store_(
        self, x: Tensor, rounding: Rounding = "nearest_even", generator: torch.Generator | None = None
    ) -> Tensor:
        """Quantise new numbers in place of the old.

        Args:
            x: A floating tensor of the parameter's shape.
            rounding: As in ``separata_mixfp4.formats``.
            generator: Draws for ``stochastic``, on the parameter's device.

        Returns:
            What was stored, in x's dtype.

        Raises:
            separata_mixfp4.errors.NonFinite: If there is a NaN or an infinity; the parameter is as it was.
        """
        self._adopt(self.quantizer.quantize(x, rounding, generator, self.parts))
        return self.dequantize(x.dtype)

    def pieces(self, numbers: int = PIECE) -> Iterator[tuple[slice, QuantizedParameter]]:
        """Views of a few rows each, with their places; one of all if the rows share a scale.

        Args:
            numbers: About how many a piece has: so few that a step's temporary tensors stay in the cache.
        """
        rows = self.shape[0]
        count = max(1, numbers * rows // max(1, self.numel())) if self.quantizer.by_row else max(1, rows)
        for begin in range(0, rows, count):
            place = slice(begin, min(begin + count, rows))
            parts = {name: part[place] if part.ndim else part for name, part in self.parts.items()}
            shape = torch.Size((place.stop - begin, *self.shape[1:]))
            yield place, QuantizedParameter(parts, shape, self.quantizer, self.dtype)

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Bytes of codes and scales."""
        return sum(part.nbytes for part in self.parts.values())

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"QuantizedParameter({self.quantizer.label}, shape={tuple(self.shape)}, dtype={self.dtype})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """Name the tensors inside, as wrappers do."""
        for name, part in self.parts.items():
            self.__dict__[f"_{name}"] = part
        return [f"_{name}" for name in self.parts], (self.shape, self.quantizer.label, self.dtype)

    @staticmethod
    def __tensor_unflatten__(
        inner: dict[str, Tensor], meta: Any, _size: Any, _stride: Any
    ) -> QuantizedParameter:
        """Put the tensors inside together again."""
        shape, label, dtype = meta
        return QuantizedParameter(
            {name.removeprefix("_"): part for name, part in inner.items()}, shape, quantizer(label), dtype
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.functional.linear:
            return _Linear.apply(*_linear_arguments(*args, **(kwargs or {})))  # type: ignore[no-untyped-call]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is aten.detach.default:
            return args[0]._like(args[0].parts)
        if func is aten.clone.default:
            return args[0]._like({name: part.clone() for name, part in args[0].parts.items()})
        if func is aten._to_copy.default:
            return args[0]._to(**kwargs)
        if func is aten.copy_.default and isinstance(args[0], cls):
            return args[0]._copy(args[1])
        if func._schema.is_mutable:
            raise InvalidSetting(
                f"{func} would change a quantised weight in place",
                "write it with store_, or an optimizer of ECO",
            )
        dense = pytree.tree_map_only(cls, lambda weight: weight.dequantize(), (args, kwargs))
        return func(*dense[0], **dense[1])

    def _like(self, parts: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> QuantizedParameter:
        return QuantizedParameter(parts, self.shape, self.quantizer, dtype or self.dtype)

    def _to(self, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> QuantizedParameter:
        """Codes and scales keep their own dtypes; only that in which the numbers are used changes."""
        moved = {name: part.to(device=device, copy=True) for name, part in self.parts.items()}
        return self._like(moved, dtype)

    def _copy(self, source: Tensor) -> QuantizedParameter:
        if isinstance(source, QuantizedParameter) and source.quantizer == self.quantizer:
            self._adopt(source.parts)
        else:
            self.store_(source.dequantize() if isinstance(source, QuantizedParameter) else source)
        return self

    def _adopt(self, parts: Mapping[str, Tensor]) -> None:
        for name, part in self.parts.items():
            part.copy_(parts[name])


class _Linear(torch.autograd.Function):
    """``linear`` that keeps the codes for the backward pass instead of the numbers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: QuantizedParameter, bias: Tensor | None) -> Tensor:
        """The product with the dequantised weight."""
        ctx.save_for_backward(x)
        ctx.weight = weight
        return nn.functional.linear(x, weight.dequantize(), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Gradients of input, weight and bias; under autocast the products are in the output's dtype."""
        [x] = ctx.saved_tensors
        weight, dtype = ctx.weight, gradient.dtype
        rows = gradient.reshape(-1, gradient.shape[-1])
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            (gradient @ weight.dequantize(dtype)).to(x.dtype) if to_x else None,
            (rows.T @ x.reshape(-1, x.shape[-1]).to(dtype)).to(weight.dtype) if to_weight else None,
            rows.sum(0) if to_bias else None,
        )


def _linear_arguments(
    input: Tensor, weight: QuantizedParameter, bias: Tensor | None = None
) -> tuple[Tensor, QuantizedParameter, Tensor | None]:
    """Put the arguments in order, however they were given."""
    return input, weight, bias
