"""From the exact states of consecutive layers to the groups that replace them."""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor

from .anatomy import Anatomy
from .config import XKVConfig
from .crosslayer_svd import crosslayer_svd
from .group import Group, heads_together
from .grouping import alike
from .layer import XKVLayer
from .ranks import resolve_ranks
from .selective import Selective
from .similarity import cka_matrix
from .timeline import Timeline

SAMPLED_TOKENS = 512  # enough to tell CKA to two digits, few enough to cost nothing beside the factorisation


class Factoriser:
    """Compresses the first tokens of layers, and leaves the layers with the rest.

    Args:
        settings: Ranks, solver and grouping.
        anatomy: The model's layers and rotation.
        timeline: Positions of the tokens.
    """

    def __init__(self, settings: XKVConfig, anatomy: Anatomy, timeline: Timeline) -> None:
        self.settings = settings
        self.anatomy = anatomy
        self.timeline = timeline

    def __call__(self, layers: tuple[XKVLayer, ...], length: int) -> list[Group]:
        """Compress layers and return their groups.

        Args:
            layers: Consecutive layers whose states are exact.
            length: Tokens to compress.
        """
        return [self._factorise(members, length) for members in self._partition(layers, length)]

    def before_rope(self, layer: XKVLayer, keys: Tensor, positions: Tensor) -> Tensor:
        """A layer's keys without their rotation.

        Args:
            layer: The layer.
            keys: A ``batch x heads x length x head_dim`` tensor.
            positions: Their integer ``batch x length`` positions.
        """
        rotation = self.anatomy.rotation_of(layer.index)
        return rotation.unrotate(keys, rotation.tables(positions.to(keys.device), self.timeline.horizon))

    def _partition(self, layers: tuple[XKVLayer, ...], length: int) -> list[tuple[XKVLayer, ...]]:
        """Factors live on one device, and layers that are not alike share none if that was asked."""
        parts = [tuple(part) for _, part in groupby(layers, key=lambda layer: layer.keys.device)]
        if self.settings.grouping == "window":
            return parts
        members = []
        for part in parts:
            groups = alike(self._similarity(part, length), self.settings.similarity, self.settings.window)
            members += [tuple(part[slot] for slot in group) for group in groups]
        return members

    def _similarity(self, layers: tuple[XKVLayer, ...], length: int) -> Tensor:
        """Mean CKA of keys and values of layers up to a window apart, from a sample of tokens."""
        assert self.timeline.positions is not None
        rows = torch.linspace(0, length - 1, min(length, SAMPLED_TOKENS)).long()
        sampled = []
        for layer in layers:
            keys, values = (states[:, :, rows.to(states.device)] for states in (layer.keys, layer.values))
            keys = self.before_rope(layer, keys, self.timeline.positions[:, rows])
            sampled.append([heads_together(states).flatten(0, 1) for states in (keys, values)])
        keys, values = (cka_matrix(states, self.settings.window - 1) for states in zip(*sampled, strict=True))
        return (keys + values) / 2

    def _factorise(self, layers: tuple[XKVLayer, ...], length: int) -> Group:
        assert self.timeline.positions is not None
        latent = self.anatomy.is_latent(layers[0].keys)
        kept_values = latent or self.settings.mode == "sr-offload"
        rank_key, rank_value = resolve_ranks(
            self.settings,
            length,
            [layer.keys.shape[1] * layer.keys.shape[-1] for layer in layers],
            [] if latent else [layer.values.shape[1] * layer.values.shape[-1] for layer in layers],
        )
        positions = self.timeline.positions[:, :length]
        keys = [self.before_rope(layer, layer.keys[:, :, :length], positions) for layer in layers]
        key_factors = crosslayer_svd(self._joined(keys), rank_key, solver=self.settings.solver)
        del keys
        value_factors = None
        if not kept_values:
            values = self._joined([layer.values[:, :, :length] for layer in layers])
            value_factors = crosslayer_svd(values, rank_value, solver=self.settings.solver)
        group = Group(
            key_factors,
            value_factors,
            layers=[layer.index for layer in layers],
            rotations=[self.anatomy.rotation_of(layer.index) for layer in layers],
            heads=[layer.keys.shape[1] for layer in layers],
            horizon=self.timeline.horizon,
        )
        for slot, layer in enumerate(layers):
            self._hand_over(layer, group, slot)
        return group

    def _joined(self, states: list[Tensor]) -> list[Tensor]:
        """Heads side by side; padding zero, so that it takes no part in the factors."""
        padding = self.timeline.padding(states[0].shape[-2])
        joined = [heads_together(layer) for layer in states]
        if padding is None:
            return joined
        return [layer.masked_fill(padding[..., None].to(layer.device), 0) for layer in joined]

    def _hand_over(self, layer: XKVLayer, group: Group, slot: int) -> None:
        """Leave a layer with what its group does not hold."""
        length = group.length
        if self.settings.mode != "dense":
            keys, values = layer.keys[:, :, :length], layer.values[:, :, :length]
            layer.selective = Selective.of(keys, values, self.settings, self.timeline.padding(length))
            layer.offloaded = values.to("cpu", copy=True) if self.settings.mode == "sr-offload" else None
        # A latent's values are small and rotated: they stay exact, in the tail, for all tokens.
        if not self.anatomy.is_latent(layer.keys):
            layer.values = layer.values[:, :, length:].clone()
        layer.keys = layer.keys[:, :, length:].clone()
        layer.group, layer.slot = group, slot
