"""The factors that a group of layers shares, and the states of one layer rebuilt from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from .crosslayer_svd import Factors
from .rope import Tables, Unrotated


class Group:
    """Compressed keys and values of consecutive layers.

    Args:
        keys: Factors of the keys before RoPE.
        values: Factors of the values; None if they are kept exact elsewhere.
        layers: Numbers of the layers.
        rotations: For each layer, the rotation its keys are given.
        heads: For each layer, its key-value heads.
        horizon: Largest position when the group was compressed; dynamic frequencies depend on it.
    """

    def __init__(
        self,
        keys: Factors,
        values: Factors | None,
        *,
        layers: list[int],
        rotations: list[Unrotated],
        heads: list[int],
        horizon: int,
    ) -> None:
        self.keys = keys
        self.values = values
        self.layers = layers
        self.rotations = rotations
        self.heads = heads
        self.horizon = horizon

    @property
    def length(self) -> int:
        """Compressed tokens."""
        return self.keys.rows.shape[-2]

    @property
    def block(self) -> int:
        """Tokens to rebuild at a time: few enough to stay in a core's cache, many enough to fill a GPU."""
        return 1024 if self.keys.rows.device.type == "cpu" else 16384

    def key_block(self, slot: int, begin: int, end: int, tables: Tables | None) -> Tensor:
        """Rotated keys of one layer for a range of tokens.

        Args:
            slot: Which layer of the group.
            begin: First token.
            end: One past the last.
            tables: Tables of all compressed tokens.

        Returns:
            A ``batch x heads x (end - begin) x head_dim`` tensor.
        """
        keys = self._heads_apart(self.keys.rows[:, begin:end] @ self.keys.bases[slot], slot)
        return self.rotations[slot].rotate(keys, None if tables is None else tables.rows(begin, end))

    def value_block(self, slot: int, begin: int, end: int) -> Tensor:
        """Values of one layer for a range of tokens, shaped like keys."""
        assert self.values is not None
        return self._heads_apart(self.values.rows[:, begin:end] @ self.values.bases[slot], slot)

    def key_basis(self, slot: int) -> Tensor:
        """The basis of a layer's keys by head: a ``batch x heads x rank x head_dim`` tensor, a view."""
        return self._heads_apart(self.keys.bases[slot], slot)

    def value_basis(self, slot: int) -> Tensor:
        """The basis of a layer's values by head, as for keys."""
        assert self.values is not None
        return self._heads_apart(self.values.bases[slot], slot)

    def select(self, indices: Tensor) -> None:
        """Keep these batch rows, in this order."""
        self._each(lambda tensor: tensor.index_select(0, indices.to(tensor.device)))

    def repeat(self, repeats: int) -> None:
        """Repeat each batch row so many times."""
        self._each(lambda tensor: tensor.repeat_interleave(repeats, dim=0))

    def crop(self, count: int) -> None:
        """Drop the last tokens; clones, so that the dropped rows are really freed."""
        kept = self.length - count
        self.keys = self.keys._replace(rows=self.keys.rows[:, :kept].clone())
        if self.values is not None:
            self.values = self.values._replace(rows=self.values.rows[:, :kept].clone())

    def tensors(self) -> Iterator[Tensor]:
        """What it holds."""
        for factors in (self.keys, self.values):
            if factors is not None:
                yield factors.rows
                yield from factors.bases

    def _heads_apart(self, states: Tensor, slot: int) -> Tensor:
        batch, count, _ = states.shape
        return states.view(batch, count, self.heads[slot], -1).transpose(1, 2)

    def _each(self, change: Callable[[Tensor], Tensor]) -> None:
        def changed(factors: Factors) -> Factors:
            return Factors(change(factors.rows), tuple(change(basis) for basis in factors.bases))

        self.keys = changed(self.keys)
        if self.values is not None:
            self.values = changed(self.values)


def heads_together(states: Tensor) -> Tensor:
    """Lay the heads of each token side by side, as the factorisation wants them.

    Args:
        states: A ``batch x heads x length x head_dim`` tensor.

    Returns:
        A ``batch x length x (heads head_dim)`` tensor.
    """
    return states.transpose(1, 2).flatten(2)
