"""What the layers of a compressed cache share: when each is compressed, and how it is served."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from .anatomy import Anatomy
from .checks import refuse_gradients, refuse_nonfinite, refuse_unmasked_padding
from .config import XKVConfig
from .deferred import Deferred
from .errors import AttentionNotSet, UnsupportedModel
from .factorise import Factoriser
from .group import Group
from .grouping import windows
from .layer import XKVLayer
from .rope import Tables
from .selective import Selective
from .timeline import Timeline


class Compressor:
    """Watches the forwards of a model and compresses a group of layers once its last layer has run.

    Until then the group is exact, and so is the attention of a prompt: at most one group of layers is exact at
    any time of a prefill in one forward.

    Args:
        settings: How to compress.
        anatomy: The model's layers and rotation.
    """

    def __init__(self, settings: XKVConfig, anatomy: Anatomy) -> None:
        self.settings = settings
        self.anatomy = anatomy
        self.timeline = Timeline()
        self.layers = [XKVLayer(index, self) for index in anatomy.layers]
        self.groups: list[Group] = []
        self._factorise = Factoriser(settings, anatomy, self.timeline)
        by_likeness = settings.grouping == "cka"
        self._spans = [tuple(self.layers)] if by_likeness else windows(self.layers, settings.window)
        self._span_of = {layer.index: span for span in self._spans for layer in span}
        self._step: tuple[tuple[int, int], Tables | None] | None = None

    @property
    def prompt_length(self) -> int:
        """Compressed tokens."""
        return self.groups[0].length if self.groups else 0

    def observe(self, layer: XKVLayer, keys: Tensor, values: Tensor, positions: Tensor | None) -> None:
        """Take note of a forward before a layer is updated; refuse what can't be served."""
        refuse_gradients(layer.index, keys, values)
        if self.settings.mode != "dense" and not self.anatomy.defers:
            raise AttentionNotSet(
                f"mode is {self.settings.mode!r}, and the model's attention is "
                f"{self.anatomy.config._attn_implementation!r}",
                "run the model inside `with separata_xkv.attention_of(model):`, or use mode='dense'",
            )
        if layer is self._span_of[layer.index][0] and self._outgrown(layer):
            # Before the forward, when no attention has yet been promised the states as they are.
            self._compress(self._span_of[layer.index], 0)
        self._note(layer, keys, positions)

    def adopt(self, layer: XKVLayer, keys: Tensor, values: Tensor, positions: Tensor | None) -> None:
        """Give an empty layer states that another cache holds."""
        refuse_gradients(layer.index, keys, values)
        self._note(layer, keys, positions)
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values

    def serve(self, layer: XKVLayer, count: int) -> tuple[Tensor, Tensor]:
        """The states of a compressed layer, for the attention of a forward: rebuilt, or left to our function.

        Args:
            layer: The layer.
            count: Tokens of the forward.
        """
        if not self.anatomy.defers or self.anatomy.is_latent(layer.keys):
            return layer.states(self.tables(layer))
        # A selective step makes tables for the tokens that it selects; those of the whole prompt cost more.
        tables = None if layer.selective is not None and count == 1 else self.tables(layer)
        length = layer.get_seq_length()
        keys, values = (Deferred.of(states, length, layer, tables) for states in (layer.keys, layer.values))
        return keys, values

    def settle(self, layer: XKVLayer, count: int) -> None:
        """After a layer was updated: compress its group if it is the last of it and the time has come."""
        span = self._span_of[layer.index]
        if layer is span[-1] and self._due(layer, count):
            # A prompt in chunks is known to be over only when the first generated token has come.
            self._compress(span, 1 if self.settings.chunked_prefill else 0)
        if layer is self.layers[-1]:
            self._step = None

    def tables(self, layer: XKVLayer) -> Tables | None:
        """Rotation tables of a layer's compressed tokens, made once a forward and kept no longer."""
        group = layer.group
        if group is None or self.timeline.positions is None or layer.index not in self.anatomy.rotated:
            return None
        key = (group.length, group.horizon)
        if self._step is None or self._step[0] != key:
            positions = self.timeline.positions[:, : group.length]
            self._step = key, self.anatomy.rotation.tables(positions, group.horizon)
        tables, device = self._step[1], layer.keys.device
        return None if tables is None else Tables(tables.cos.to(device), tables.sin.to(device))

    def compress(self) -> None:
        """Compress every group of layers that is long enough, now."""
        for span in self._spans:
            if span[0].get_seq_length() >= self.settings.min_length:
                self._compress(span, 0)
        self._step = None

    def select(self, indices: Tensor) -> None:
        """Keep these batch rows of what is shared."""
        self.timeline.select(indices)
        for group in self.groups:
            group.select(indices)

    def repeat(self, repeats: int) -> None:
        """Repeat the batch rows of what is shared."""
        self.timeline.repeat(repeats)
        for group in self.groups:
            group.repeat(repeats)

    def crop(self, count: int, from_prompt: int) -> None:
        """Forget the last tokens.

        Args:
            count: All tokens to forget.
            from_prompt: How many of those are compressed.
        """
        if from_prompt:
            kept = self.prompt_length - from_prompt
            for layer in self.layers:
                self._shorten(layer, kept)
            for group in self.groups:
                group.crop(from_prompt)
            self.groups = self.groups if kept else []
            self._step = None
        self.timeline.crop(count)

    def reset(self) -> None:
        """Forget everything."""
        self.timeline.reset()
        self.groups = []
        self._step = None

    def tensors(self) -> Iterator[Tensor]:
        """What is shared and held between forwards."""
        yield from self.timeline.tensors()
        yield from self.anatomy.rotation.tensors()
        for group in self.groups:
            yield from group.tensors()

    def _note(self, layer: XKVLayer, keys: Tensor, positions: Tensor | None) -> None:
        if self.settings.mode != "dense" and self.anatomy.is_latent(keys):
            raise UnsupportedModel(
                f"mode is {self.settings.mode!r}, and layer {layer.index} caches a latent",
                "use mode='dense' for models with multi-head latent attention",
            )
        batch, _, count, _ = keys.shape
        # The first layer of a forward brings its positions; the others find them noted.
        if layer.get_seq_length() + count > self.timeline.length:
            self.timeline.append(positions, batch, count, keys.device)

    def _due(self, layer: XKVLayer, count: int) -> bool:
        """Whether a prompt has just been read."""
        long_enough = layer.get_seq_length() >= self.settings.min_length
        read = count == 1 if self.settings.chunked_prefill else count > 1
        return layer.group is None and long_enough and read

    def _outgrown(self, layer: XKVLayer) -> bool:
        """Whether the exact tail has become long enough to be compressed too."""
        every = self.settings.recompress_every
        long_enough = layer.get_seq_length() >= self.settings.min_length
        return every is not None and layer.tail_length >= every and long_enough

    def _compress(self, span: tuple[XKVLayer, ...], keep: int) -> None:
        """Compress layers together; what is compressed already is rebuilt first."""
        former = {id(layer.group) for layer in span}
        for layer in span:
            if layer.group is not None:
                layer.keys, layer.values = layer.states(self.tables(layer))
                layer.group = layer.selective = layer.offloaded = None
        self.groups = [group for group in self.groups if id(group) not in former]
        length = span[0].tail_length - keep
        for layer in span:
            refuse_nonfinite(layer.index, layer.keys, layer.values)
            first = layer.index == 0 and 0 in self.anatomy.rotated and not self.settings.trust_positions
            if first and self.timeline.padding(length) is None:
                refuse_unmasked_padding(layer.values[:, :, :length])
        self.groups += self._factorise(span, length)

    def _shorten(self, layer: XKVLayer, kept: int) -> None:
        """Bring what a layer holds of the prompt itself to its new length; the group is cropped after."""
        if layer.group is None:
            return
        if layer.selective is not None and kept:
            # A chunk that is cut becomes local; its tokens are exact where they were, and rebuilt elsewhere.
            keys, values = (states[:, :, :kept] for states in layer.states(self.tables(layer)))
            layer.selective = Selective.of(keys, values, self.settings, self.timeline.padding(kept))
        if layer.offloaded is not None:
            layer.offloaded = layer.offloaded[:, :, :kept].clone()
        if self.anatomy.is_latent(layer.keys):
            layer.values = layer.values[:, :, :kept].clone()
        if not kept:
            layer.group = layer.selective = layer.offloaded = None
