"""Rotary position embedding, undone and done again with the model's own functions."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel

from .errors import UnsupportedRotation

ROUND_TRIP = 1e-4  # a random key must survive rotation and its inverse this well in float32
PROBE_POSITION = 7


class Tables(NamedTuple):
    """Cosines and sines of some positions, as the model's rotary module gives them, in float32.

    Args:
        cos: A ``batch x length x rotary width`` tensor; a scaled rotation includes its scale.
        sin: The same for the sines.
    """

    cos: Tensor
    sin: Tensor

    def rows(self, begin: int, end: int) -> Tables:
        """The tables of the tokens from ``begin`` to ``end``."""
        return Tables(self.cos[:, begin:end], self.sin[:, begin:end])


class Unrotated:
    """The rotation of a model, or of a layer, that has none: keys pass through."""

    def tables(self, positions: Tensor, horizon: int) -> Tables | None:
        """No tables."""
        return None

    def rotate(self, keys: Tensor, tables: Tables | None) -> Tensor:
        """The keys as they are."""
        return keys

    def unrotate(self, keys: Tensor, tables: Tables | None) -> Tensor:
        """The keys as they are."""
        return keys

    def tensors(self) -> Iterator[Tensor]:
        """It holds no tensors."""
        return iter(())


class Rotation(Unrotated):
    """The rotary embedding of one model.

    A cache receives keys after RoPE; their low rank lies before it (xKV). RoPE turns each pair of
    channels by an angle, so the model's own ``apply_rotary_pos_emb`` with the sine negated turns them back.
    Dividing both tables by ``cos^2 + sin^2`` first undoes the scale of YaRN or LongRoPE too. Channels beyond the
    rotary width (partial rotary) pass through.

    Args:
        module: The model's rotary module; it is copied, since modules with dynamic frequencies change when used.
        apply: The model's function ``(query, key, cos, sin) -> (query, key)``, or ``(key, cos, sin) -> key``.
        layer_type: Passed to modules that hold one set of frequencies for each type of layer.
        head_dim: Width of a head.

    Raises:
        UnsupportedRotation: If a random key does not survive rotation and inverse.
    """

    def __init__(self, module: nn.Module, apply: Any, *, layer_type: str | None, head_dim: int) -> None:
        self._module = copy.deepcopy(module)
        self._apply = _for_keys(apply)
        self._options = {} if layer_type is None else {"layer_type": layer_type}
        self._width = self._rotary_width(head_dim)

    @torch.no_grad()
    def tables(self, positions: Tensor, horizon: int) -> Tables:
        """Cosines and sines of positions.

        Args:
            positions: An integer ``batch x length`` tensor.
            horizon: Largest position the model had seen when the keys were compressed. Dynamic frequencies
                depend on it, so that every table of one compression has to be made with the same.
        """
        # The horizon rides along as a last position, because the modules take it from the positions' maximum.
        last = positions.new_full((positions.shape[0], 1), horizon)
        self._module.to(positions.device)
        kind = torch.empty(0, dtype=torch.float32, device=positions.device)
        cos, sin = self._module(kind, torch.cat([positions, last], dim=-1).long(), **self._options)
        return Tables(cos[:, :-1], sin[:, :-1])

    def rotate(self, keys: Tensor, tables: Tables | None) -> Tensor:
        """Turn keys to their positions.

        Args:
            keys: A ``batch x heads x length x head_dim`` tensor.
            tables: Tables of the ``batch x length`` positions.

        Returns:
            The rotated keys, in the dtype of the keys; the products are formed in float32 at least.
        """
        if tables is None:
            return keys
        return self._turned(keys, tables, self._width)

    def unrotate(self, keys: Tensor, tables: Tables | None) -> Tensor:
        """Turn keys back from their positions; the inverse of ``rotate`` with the same tables."""
        if tables is None:
            return keys
        scale = tables.cos.square() + tables.sin.square()
        return self._turned(keys, Tables(tables.cos / scale, -tables.sin / scale), self._width)

    def tensors(self) -> Iterator[Tensor]:
        """The frequencies it holds."""
        yield from self._module.buffers()
        # LongRoPE keeps its long factors as a plain attribute.
        yield from (value for value in vars(self._module).values() if isinstance(value, Tensor))

    def _turned(self, keys: Tensor, tables: Tables, width: int) -> Tensor:
        rotary = keys[..., :width]
        turned = self._apply(rotary, tables.cos, tables.sin)
        if width == keys.shape[-1]:
            return turned.to(keys.dtype)
        return torch.cat([turned.to(keys.dtype), keys[..., width:]], dim=-1)

    def _rotary_width(self, head_dim: int) -> int:
        """The channels that turn: as wide as the tables, or twice that where one table serves both halves."""
        device = next(self._module.buffers(), torch.empty(0)).device
        tables = self.tables(torch.tensor([[PROBE_POSITION]], device=device), PROBE_POSITION)
        scale = tables.cos.square() + tables.sin.square()
        inverse = Tables(tables.cos / scale, -tables.sin / scale)
        for width in (tables.cos.shape[-1], 2 * tables.cos.shape[-1]):
            probe = torch.linspace(-1, 1, head_dim, device=device).view(1, 1, 1, head_dim)
            try:
                back = self._turned(self._turned(probe, tables, width), inverse, width)
            except RuntimeError:
                continue
            if width <= head_dim and torch.allclose(back, probe, atol=ROUND_TRIP):
                return width
        raise UnsupportedRotation(
            f"{type(self._module).__name__} is not undone by its own function with the sine negated",
            "use a model whose rotary embedding turns pairs of channels, such as Llama's",
        )


def rotation_of(model_or_config: Any, head_dim: int) -> Unrotated:
    """The rotary embedding of a decoder, or none if it has none.

    Args:
        model_or_config: A transformers model, whose rotary module is copied, or a config, from which the
            module that its model would have is built.
        head_dim: Width of a key head.

    Raises:
        UnsupportedRotation: If it has one that can't be found or undone.
    """
    config = getattr(model_or_config, "config", model_or_config).get_text_config(decoder=True)
    if isinstance(model_or_config, PreTrainedModel):
        decoder: Any = model_or_config.get_decoder()  # type: ignore[no-untyped-call]
        code, module = sys.modules[type(decoder).__module__], getattr(decoder, "rotary_emb", None)
    else:
        model_class = _model_class(config)
        code = sys.modules[model_class.__module__]
        module = _build(config, code, model_class.__name__)
    apply = getattr(code, "apply_rotary_pos_emb", None)
    if module is None and apply is None:
        return Unrotated()
    if module is None or apply is None:
        raise UnsupportedRotation(
            f"the rotary embedding of {config.model_type} can't be found by its usual names",
            "use a model with a rotary_emb module and a function apply_rotary_pos_emb",
        )
    by_layer_type = "layer_type" in inspect.signature(module.forward).parameters and hasattr(
        config, "layer_types"
    )
    return Rotation(module, apply, layer_type="full_attention" if by_layer_type else None, head_dim=head_dim)


def _for_keys(apply: Any) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    names = list(inspect.signature(apply).parameters)
    if names[2:4] == ["cos", "sin"]:
        # Both arguments are turned alike, so that an empty query costs nothing.
        return lambda keys, cos, sin: apply(keys[:, :0], keys, cos, sin)[1]
    if names[1:3] == ["cos", "sin"]:
        return lambda keys, cos, sin: apply(keys, cos, sin)
    raise UnsupportedRotation(
        f"apply_rotary_pos_emb takes {', '.join(names)}", "use a model whose function takes cos and sin"
    )


def _model_class(config: Any) -> type[nn.Module]:
    try:
        found: Any = transformers.MODEL_MAPPING[type(config)]
    except KeyError as error:
        raise UnsupportedRotation(
            f"transformers knows no model for {type(config).__name__}", "pass the model instead of its config"
        ) from error
    model_class: Any = found[0] if isinstance(found, tuple) else found
    return cast(type[nn.Module], model_class)


def _build(config: Any, code: Any, model_name: str) -> nn.Module | None:
    rotary: dict[str, Any] = {
        name: value
        for name, value in vars(code).items()
        if inspect.isclass(value) and name.endswith("RotaryEmbedding") and "Vision" not in name
    }
    own = f"{model_name.removesuffix('Model').removesuffix('Text')}RotaryEmbedding"
    name = own if own in rotary else next(iter(rotary), None)
    if name is None:
        return None
    if own not in rotary and len(rotary) > 1:
        raise UnsupportedRotation(
            f"{code.__name__} has the rotary embeddings {', '.join(rotary)}",
            "pass the model instead of its config",
        )
    module: nn.Module = rotary[name](config)
    return module
