"""Which layers are compressed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")


def windows(layers: Sequence[T], size: int) -> list[tuple[T, ...]]:
    """Consecutive layers, so many at a time; the last window may be shorter.

    Args:
        layers: Layers in order.
        size: Layers in a window.
    """
    return [tuple(layers[begin : begin + size]) for begin in range(0, len(layers), size)]


def alike(similarity: Tensor, threshold: float, size: int) -> list[tuple[int, ...]]:
    """Merge neighbours greedily while they resemble the group.

    A layer joins the group before it if its mean similarity to the group's members reaches the threshold and the
    group is not full; otherwise it begins a group of its own.

    Args:
        similarity: A ``layers x layers`` tensor, such as linear CKA.
        threshold: Least mean similarity.
        size: Most layers in a group.

    Returns:
        Groups of layer numbers, in order.
    """
    groups: list[tuple[int, ...]] = []
    for layer in range(similarity.shape[0]):
        last = groups[-1] if groups else ()
        if last and len(last) < size and float(similarity[layer, list(last)].mean()) >= threshold:
            groups[-1] = (*last, layer)
        else:
            groups.append((layer,))
    return groups
