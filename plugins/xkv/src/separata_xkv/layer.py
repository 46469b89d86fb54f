"""One model layer of a compressed cache: its exact tail, and its place in a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor
from transformers.cache_utils import DynamicLayer

from .rope import Tables
from .selective import Selective, take

if TYPE_CHECKING:
    from .compressor import Compressor
    from .group import Group


class XKVLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers' subclass hook is untyped
    """A layer whose first tokens may live in the factors of a group; the others are exact in ``keys`` and ``values``.

    Args:
        index: The model layer.
        compressor: What it shares with the other layers.
    """

    is_compileable = False
    # None until the first update only, when nothing but update is called.
    keys: Tensor
    values: Tensor

    def __init__(self, index: int, compressor: Compressor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.index = index
        self.compressor = compressor
        self.group: Group | None = None
        self.slot = 0
        self.selective: Selective | None = None
        self.offloaded: Tensor | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Add the states of one forward and return all states, exact or rebuilt, for its attention.

        Args:
            key_states: A ``batch x heads x tokens x head_dim`` tensor of rotated keys.
            value_states: Values of the same shape but for the last dimension.
            args: Ignored.
            kwargs: ``kwargs`` holds what the model passes to its attention, with the ``position_ids``.

        Raises:
            GradientsRequired: If the states carry gradients.
            AttentionNotSet: If the mode needs an attention function that the model does not use.
            LeftPadded: If the prompts of a batch seem padded and no positions say so.
            NonFiniteStates: If states to be compressed hold NaN or infinity.
        """
        call = kwargs.get("kwargs") or {}
        self.compressor.observe(self, key_states, value_states, call.get("position_ids"))
        served = super().update(key_states, value_states)
        if self.group is not None:
            served = self.compressor.serve(self, key_states.shape[-2])
        self.compressor.settle(self, key_states.shape[-2])
        return served

    @property
    def prompt_length(self) -> int:
        """Compressed tokens."""
        return 0 if self.group is None else self.group.length

    @property
    def tail_length(self) -> int:
        """Exact tokens after them."""
        return super().get_seq_length()

    def get_seq_length(self) -> int:
        """All tokens."""
        return self.prompt_length + self.tail_length

    def states(self, tables: Tables | None) -> tuple[Tensor, Tensor]:
        """All keys, rotated, and all values: rebuilt, with the exact tokens in their places.

        Args:
            tables: Rotation tables of the compressed tokens.
        """
        if self.group is None:
            return self.keys, self.values
        keys = self._joined(self.keys)
        for begin in range(0, self.prompt_length, self.group.block):
            end = min(begin + self.group.block, self.prompt_length)
            keys[:, :, begin:end] = self.group.key_block(self.slot, begin, end, tables)
        values = self._all_values()
        if self.selective is not None:
            prompt = slice(0, self.prompt_length)
            self.selective.overlay(keys[:, :, prompt], values[:, :, prompt])
        return keys, values

    def values_at(self, rows: Tensor) -> Tensor:
        """Exact values of some compressed tokens, fetched from the host.

        Args:
            rows: An integer ``batch x heads x n`` tensor.
        """
        assert self.offloaded is not None
        return take(self.offloaded, rows.to(self.offloaded.device)).to(rows.device)

    def crop(self, tokens_to_remove: int) -> None:
        """Remove tokens from the exact tail; the cache crops the compressed ones."""
        removed = min(-tokens_to_remove, self.tail_length)
        if tokens_to_remove > 0:
            super().crop(tokens_to_remove)
        elif removed:
            # Clones, so that what was removed is really freed.
            self.keys = self.keys[:, :, : self.keys.shape[-2] - removed].clone()
            self.values = self.values[:, :, : self.values.shape[-2] - removed].clone()

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self.group = self.selective = self.offloaded = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the batch rows."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these batch rows of what the layer holds itself."""
        if self.is_initialized:
            self._each(lambda tensor: tensor.index_select(0, indices.to(tensor.device)))
            if self.selective is not None:
                self.selective.select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat the batch rows of what the layer holds itself."""
        if self.is_initialized:
            self._each(lambda tensor: tensor.repeat_interleave(repeats, dim=0))
            if self.selective is not None:
                self.selective.repeat(repeats)

    def tensors(self) -> Iterator[Tensor]:
        """What it holds itself."""
        yield from (tensor for tensor in (self.keys, self.values, self.offloaded) if tensor is not None)
        if self.selective is not None:
            yield from self.selective.named().values()

    def _each(self, change: Any) -> None:
        self.keys, self.values = change(self.keys), change(self.values)
        if self.offloaded is not None:
            self.offloaded = change(self.offloaded)

    def _joined(self, tail: Tensor) -> Tensor:
        """Room for all tokens, with the tail in its place."""
        batch, heads, _, width = tail.shape
        joined = tail.new_empty(batch, heads, self.prompt_length + self.tail_length, width)
        joined[:, :, self.prompt_length :] = tail
        return joined

    def _all_values(self) -> Tensor:
        assert self.group is not None
        if self.group.values is None and self.offloaded is None:
            return self.values
        values = self._joined(self.values)
        if self.offloaded is not None:
            values[:, :, : self.prompt_length] = self.offloaded.to(values.device)
            return values
        for begin in range(0, self.prompt_length, self.group.block):
            end = min(begin + self.group.block, self.prompt_length)
            values[:, :, begin:end] = self.group.value_block(self.slot, begin, end)
        return values
