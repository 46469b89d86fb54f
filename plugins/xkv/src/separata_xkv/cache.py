"""A key-value cache of transformers that keeps a prompt as factors shared across layers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import attrs
import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from . import attention as attention  # registers the attention function that the selective modes need
from .anatomy import Anatomy
from .compressor import Compressor
from .config import XKVConfig
from .errors import CacheMismatch, InvalidSetting
from .layer import XKVLayer
from .timeline import positions_from_mask


class XKVCache(Cache):
    """A cache whose prompt is compressed across layers; generated tokens are exact.

    The keys before RoPE of a few consecutive layers span nearly the same subspace, and so do their values. Once
    such a group of layers has processed the prompt, their states are replaced by low-rank factors with rows in
    common. Layers with a sliding window, linear attention or another layer's keys stay as they are.

    References: xKV (arXiv 2503.18893); the selective modes follow ShadowKV (arXiv 2410.21465).

    Args:
        model_or_config: The model, or its config.
        settings: How to compress; the defaults if not given.
        fields: Settings by name, over those of ``settings``: ``ratio``, ``window``, ``mode``, ...

    Raises:
        InvalidSetting: If a setting is out of its range, or the window is wider than the model.
        UnsupportedModel: If the model attends to an encoder or keeps no layer's keys and values whole.
        UnsupportedRotation: If its rotary embedding can't be undone.

    Example:
        >>> cache = XKVCache(model.config, ratio=8, window=4)
        >>> model.generate(**inputs, cache=cache, max_new_tokens=64)
        >>> cache.nbytes(), cache.exact_nbytes()
    """

    def __init__(self, model_or_config: Any, settings: XKVConfig | None = None, **fields: Any) -> None:
        settings = attrs.evolve(settings or XKVConfig(), **fields)
        anatomy = Anatomy.of(model_or_config)
        if settings.window > len(anatomy.layers):
            raise InvalidSetting(
                f"window is {settings.window}, and the model has {len(anatomy.layers)} layers to compress",
                f"window is at most {len(anatomy.layers)}",
            )
        self.settings = settings
        self.compressor = Compressor(settings, anatomy)
        layers = DynamicCache(config=anatomy.config).layers
        for layer in self.compressor.layers:
            layers[layer.index] = layer
        super().__init__(layers=layers)

    @classmethod
    def from_cache(
        cls,
        cache: Cache,
        model_or_config: Any,
        settings: XKVConfig | None = None,
        *,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        **fields: Any,
    ) -> Self:
        """Compress a cache that a model has filled; that cache stays as it is.

        Args:
            cache: A ``DynamicCache``.
            model_or_config: The model that filled it, or its config.
            settings: How to compress.
            attention_mask: A ``batch x length`` mask of its tokens, for padded prompts.
            position_ids: Their ``batch x length`` positions, if they are not those that a mask implies.
            fields: Settings by name.

        Raises:
            CacheMismatch: If the cache is empty or holds other layers than the model has.
            LeftPadded: If prompts seem padded, and neither mask nor positions are given.
        """
        if attention_mask is not None or position_ids is not None:
            fields = {"trust_positions": True, **fields}
        made = cls(model_or_config, settings, **fields)
        if position_ids is None and attention_mask is not None:
            position_ids = positions_from_mask(attention_mask)
        made._take_over(cache, position_ids)
        made.compressor.compress()
        return made

    @property
    def prompt_length(self) -> int:
        """Tokens that are compressed; those after them are exact."""
        return self.compressor.prompt_length

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor that the cache holds."""
        yield from self.compressor.tensors()
        for layer in self.layers:
            yield from layer.tensors() if isinstance(layer, XKVLayer) else _tensors_in(vars(layer).values())

    def nbytes(self, *, offloaded: bool = True) -> int:
        """Bytes of everything that the cache holds: factors, bases, landmarks, exact tokens, positions, frequencies.

        Args:
            offloaded: Count the values that sr-offload keeps in the host's memory too.
        """
        left_out = {id(layer.offloaded) for layer in self.compressor.layers if not offloaded}
        storages = {
            (tensor.device, tensor.untyped_storage().data_ptr()): tensor.untyped_storage().nbytes()
            for tensor in self.tensors()
            if id(tensor) not in left_out
        }
        return sum(storages.values())

    def exact_nbytes(self) -> int:
        """Bytes that a ``DynamicCache`` of the same tokens would hold."""
        total = 0
        for layer in self.layers:
            if not isinstance(layer, XKVLayer):
                total += sum(tensor.nbytes for tensor in _tensors_in(vars(layer).values()))
            elif layer.is_initialized:
                batch, heads, _, key_width = layer.keys.shape
                width = key_width + layer.values.shape[-1]
                total += batch * heads * layer.get_seq_length() * width * layer.keys.element_size()
        return total

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the batch rows, as beam search does."""
        super().reorder_cache(beam_idx)  # type: ignore[arg-type]
        self.compressor.select(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these batch rows, in this order."""
        super().batch_select_indices(indices)
        self.compressor.select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each batch row so many times."""
        super().batch_repeat_interleave(repeats)
        self.compressor.repeat(repeats)

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last tokens: exact ones first, then rows of the factors.

        Args:
            tokens_to_remove: Minus their number, as transformers has it.
        """
        length, tail = self.compressor.timeline.length, self.compressor.layers[0].tail_length
        super().crop(tokens_to_remove)
        count = min(-tokens_to_remove, length)
        self.compressor.crop(count, max(count - tail, 0))

    def reset(self) -> None:
        """Forget everything."""
        super().reset()  # type: ignore[no-untyped-call]
        self.compressor.reset()

    def save(self, folder: Path | str) -> Path:
        """Write the cache to a folder, to go on from the same prompt later.

        Args:
            folder: It is written whole or not at all.

        Raises:
            CacheMismatch: If the cache holds layers that can't be saved.
        """
        from .storage import save

        return save(self, Path(folder))

    @classmethod
    def load(
        cls, folder: Path | str, model_or_config: Any, *, device: torch.device | str = "cpu"
    ) -> XKVCache:
        """Read a cache that ``save`` wrote, bit for bit.

        Args:
            folder: The folder.
            model_or_config: The model that it was made with, or its config.
            device: Where the tensors go.

        Raises:
            CacheMismatch: If it was made with another model.
            ArtifactError: If the folder is missing, damaged or holds something else.
        """
        from .storage import load

        return load(Path(folder), model_or_config, str(device))

    def _take_over(self, cache: Cache, position_ids: Tensor | None) -> None:
        if len(cache.layers) != len(self.layers):
            raise CacheMismatch(
                f"the cache has {len(cache.layers)} layers, and the model {len(self.layers)}",
                "pass the model that filled the cache",
            )
        theirs: Any
        for index, theirs in enumerate(cache.layers):
            ours = self.layers[index]
            if not isinstance(ours, XKVLayer):
                self.layers[index] = copy.deepcopy(theirs)
                continue
            if theirs.keys is None or not theirs.get_seq_length() or getattr(theirs, "is_sliding", False):
                raise CacheMismatch(
                    f"layer {index} of the cache is {theirs!r} with {theirs.get_seq_length()} tokens",
                    "pass a DynamicCache that the model has filled",
                )
            self.compressor.adopt(ours, theirs.keys, theirs.values, position_ids)


def _tensors_in(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict):
            yield from _tensors_in(value.values())
        elif isinstance(value, list | tuple):
            yield from _tensors_in(value)
