"""A stand-in for keys and values that an attention function rebuilds, and that nothing else may touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .errors import AttentionNotSet
from .rope import Tables

if TYPE_CHECKING:
    from .layer import XKVLayer

METADATA = {
    torch.Tensor.shape.__get__,  # type: ignore[attr-defined]
    torch.Tensor.dtype.__get__,  # type: ignore[attr-defined]
    torch.Tensor.device.__get__,
    torch.Tensor.ndim.__get__,  # type: ignore[attr-defined]
    torch.Tensor.requires_grad.__get__,  # type: ignore[attr-defined]
    torch.Tensor.size,
    torch.Tensor.dim,
    torch.Tensor.numel,
}


class Deferred(torch.Tensor):
    """States of one layer that have the right shape and no content.

    A cache can hand an attention function two tensors and nothing else. This one carries the layer it stands for;
    any operation on it is an error, so that a model with another attention can't use it unnoticed.
    """

    layer: XKVLayer
    tables: Tables | None

    @classmethod
    def of(cls, like: Tensor, length: int, layer: XKVLayer, tables: Tables | None) -> Deferred:
        """Stand for a layer's states.

        Args:
            like: Gives batch, heads, head_dim, dtype and device.
            length: Tokens.
            layer: The layer to be rebuilt.
            tables: Rotation tables of its compressed tokens; None if they are not needed.
        """
        batch, heads, _, width = like.shape
        made = like.new_empty(()).expand(batch, heads, length, width).as_subclass(cls)
        made.layer, made.tables = layer, tables
        return made

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer questions about shape, type and place; refuse the rest."""
        if func not in METADATA:
            name = getattr(func, "__name__", str(func))
            raise AttentionNotSet(
                f"{name} was called on compressed states",
                "set the model's attention with attention_of(model), or use mode='dense' with another attention",
            )
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        with torch._C.DisableTorchFunctionSubclass():
            return f"Deferred(shape={tuple(self.shape)}, layer={self.layer.index})"
