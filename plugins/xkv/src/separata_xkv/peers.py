"""The caches that xKV is measured against, each counted by the bytes it really holds.

A factorisation of each layer on its own is ``XKVCache(window=1)``; the others are here. They serve evaluation: a
prompt is compressed once and scored, in one batch order and without cropping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, DynamicLayer, QuantizedCache

from .groupwise import Quantised
from .merging import Merged

States = tuple[Tensor, Tensor]


class StoredLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer whose prompt is kept in another form and rebuilt for every forward; later tokens are exact.

    Args:
        rebuild: Gives the prompt's keys and values.
        held: Every tensor that the other form consists of.
        length: Tokens of the prompt.
    """

    is_croppable = False

    def __init__(self, rebuild: Callable[[], States], held: Sequence[Tensor], length: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rebuild = rebuild
        self.held = held
        self.length = length

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Add new states and return all of them, rebuilt and exact."""
        tail = super().update(key_states, value_states, *args, **kwargs)
        keys, values = (torch.cat(pair, dim=-2) for pair in zip(self.rebuild(), tail, strict=True))
        return keys, values

    def get_seq_length(self) -> int:
        """All tokens."""
        return self.length + super().get_seq_length()

    def reorder_cache(self, beam_idx: Tensor) -> NoReturn:
        """Not supported."""
        raise NotImplementedError("the peers keep one batch order; use XKVCache for beams")


class KIVICache(Cache):
    """Keys quantised by channel and values by token, in groups (Liu et al., KIVI, arXiv 2402.02750).

    Tokens that fill no group of keys stay exact; KIVI's window of recent exact tokens is left out, since at equal
    bytes it would take half the budget of a short prompt.
    """

    @classmethod
    def from_cache(cls, cache: Cache, *, key_bits: int = 2, value_bits: int = 2, group: int = 32) -> Self:
        """Quantise a filled cache; that cache stays as it is.

        Args:
            cache: A ``DynamicCache`` with full attention in all layers.
            key_bits: Bits of a key's code.
            value_bits: Bits of a value's code.
            group: Tokens (keys) or channels (values) that share a scale.
        """
        return cls(layers=[_quantised(layer, key_bits, value_bits, group) for layer in cache.layers])


class MiniCache(Cache):
    """Neighbouring layers merged in pairs (Liu et al., MiniCache, arXiv 2405.14366)."""

    @classmethod
    def from_cache(cls, cache: Cache, *, start: int = 0, retained: float = 0.05) -> Self:
        """Merge a filled cache; that cache stays as it is.

        Args:
            cache: A ``DynamicCache`` with full attention in all layers.
            start: First layer to merge; MiniCache starts at half the depth, 0 merges all.
            retained: Share of the tokens that are kept exact.
        """
        layers: list[Any] = [_exact(layer) for layer in cache.layers]
        for index in range(start, len(layers) - 1, 2):
            layers[index : index + 2] = _merged(cache.layers[index], cache.layers[index + 1], retained)
        return cls(layers=layers)


def fp8_cache(cache: Cache, config: PreTrainedConfig) -> QuantizedCache:
    """Transformers' own 8-bit floating-point cache, filled from another one.

    Args:
        cache: A filled ``DynamicCache``.
        config: The model's config.
    """
    quantised = QuantizedCache("fp8", config)
    layers: list[Any] = cache.layers
    for index, layer in enumerate(layers):
        quantised.update(layer.keys, layer.values, index)
    return quantised


def _exact(layer: Any) -> StoredLayer:
    keys, values = layer.keys, layer.values
    return StoredLayer(lambda: (keys, values), (keys, values), keys.shape[-2])


def _quantised(layer: Any, key_bits: int, value_bits: int, group: int) -> StoredLayer:
    length = layer.keys.shape[-2]
    full = length - length % group
    rest = layer.keys[:, :, full:].clone()
    # Along tokens for the keys: their outliers sit in a few channels, each of which gets scales of its own.
    keys = Quantised(layer.keys[:, :, :full].mT, key_bits, group)
    values = Quantised(layer.values, value_bits, group)

    def rebuild() -> States:
        return torch.cat([keys.dequantise().mT, rest], dim=-2), values.dequantise()

    return StoredLayer(rebuild, (*keys.tensors(), *values.tensors(), rest), length)


def _merged(first: Any, second: Any, retained: float) -> list[StoredLayer]:
    keys = Merged(first.keys, second.keys, retained=retained)
    values = Merged(first.values, second.values, retained=retained)
    shared = (keys.directions, values.directions)

    def layer(number: int) -> StoredLayer:
        own = [part for merged in (keys, values) for part in (merged.magnitudes, merged.kept, merged.places)]
        return StoredLayer(
            lambda: (keys.states(number), values.states(number)), (*shared, *own), first.keys.shape[-2]
        )

    return [layer(0), layer(1)]
