"""Neighbouring layers merged by spherical interpolation of their states, as MiniCache has it."""

from __future__ import annotations

import torch
from torch import Tensor


def slerp(first: Tensor, second: Tensor, weight: float = 0.5) -> Tensor:
    """Interpolate directions on the sphere (MiniCache, eq. 3).

    ``sin((1 - t) a) / sin(a) u + sin(t a) / sin(a) v`` for unit vectors u, v at the angle a. Opposite vectors
    have no unique arc; theirs is the straight line.

    Args:
        first: A ``... x width`` tensor of unit vectors.
        second: A tensor of the same shape.
        weight: t, 0 gives the first and 1 the second.

    Returns:
        A ``... x width`` tensor of unit vectors.
    """
    angle = (first * second).sum(-1, keepdim=True).clamp(-1, 1).acos()
    sine = angle.sin()
    # Nearly parallel or opposite: the arc's weights are 0 / 0, and the chord is as good.
    curved = sine > 1e-4
    sine = torch.where(curved, sine, torch.ones_like(sine))
    left = torch.where(curved, ((1 - weight) * angle).sin() / sine, torch.full_like(sine, 1 - weight))
    right = torch.where(curved, (weight * angle).sin() / sine, torch.full_like(sine, weight))
    mixed = left * first + right * second
    unit: Tensor = mixed / mixed.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(mixed.dtype).tiny)
    return unit


class Merged:
    """The states of two layers as one direction a token and head, and each layer's own magnitudes.

    Tokens whose directions differ most are not merged but kept, with their places (MiniCache, section 4.3).

    Args:
        first: A ``batch x heads x length x width`` tensor of one layer.
        second: The next layer's.
        weight: Place of the merged direction between the two, 0.5 in MiniCache.
        retained: Share of the tokens that are kept exact, 0.05 in MiniCache.
    """

    def __init__(self, first: Tensor, second: Tensor, *, weight: float = 0.5, retained: float = 0.05) -> None:
        states = torch.stack([first, second]).float()
        magnitudes = states.norm(dim=-1, keepdim=True)
        directions = states / magnitudes.clamp_min(torch.finfo(torch.float32).tiny)
        self.directions = slerp(directions[0], directions[1], weight).to(first.dtype)
        self.magnitudes = magnitudes.to(first.dtype)
        cosine = (directions[0] * directions[1]).sum(-1).mean(1)
        count = round(retained * first.shape[-2])
        self.places = cosine.topk(count, largest=False).indices.to(torch.int32)
        self.kept = self._at(torch.stack([first, second]), self.places)

    def states(self, layer: int) -> Tensor:
        """The states of one of the two layers, ``batch x heads x length x width``.

        Args:
            layer: 0 or 1.
        """
        rebuilt = self.directions * self.magnitudes[layer]
        places = self.places.long()[:, None, :, None].expand_as(self.kept[layer])
        states: Tensor = rebuilt.scatter(2, places, self.kept[layer])
        return states

    @staticmethod
    def _at(states: Tensor, places: Tensor) -> Tensor:
        _, _, heads, _, width = states.shape
        index = places.long()[None, :, None, :, None].expand(2, -1, heads, -1, width)
        return states.gather(3, index)
