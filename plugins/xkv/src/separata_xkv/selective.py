"""What a layer keeps besides its factors so that a query can select the tokens it needs."""

from __future__ import annotations

import torch
from torch import Tensor

from .config import XKVConfig
from .select_chunks import landmarks_of, outlier_chunks


class Selective:
    """Landmarks of all selectable chunks, and the tokens that are kept exact (as in ShadowKV).

    The last chunks of the prompt, with the tokens that fill no chunk, are local: always attended to, never
    selected. So are the outliers, the chunks whose mean represents their members worst.

    Args:
        landmarks: A ``batch x heads x chunks x head_dim`` tensor.
        outliers: An integer ``batch x heads x n`` tensor of chunk numbers.
        keys: A ``batch x heads x exact x head_dim`` tensor: rotated keys of the outliers, then of the local tokens.
        values: Their values.
        length: Tokens of the prompt.
        chunk: Tokens in a chunk.
    """

    def __init__(
        self, landmarks: Tensor, outliers: Tensor, keys: Tensor, values: Tensor, *, length: int, chunk: int
    ) -> None:
        self.landmarks = landmarks
        self.outliers = outliers
        self.keys = keys
        self.values = values
        self.length = length
        self.chunk = chunk

    @classmethod
    def of(
        cls, keys: Tensor, values: Tensor, settings: XKVConfig, padding: Tensor | None = None
    ) -> Selective:
        """Build it from the states of a prompt.

        Args:
            keys: A ``batch x heads x length x head_dim`` tensor of rotated keys.
            values: Values of the same shape but for the last dimension.
            settings: Chunk size and how many chunks are outliers and local.
            padding: A boolean ``batch x length`` tensor.
        """
        length, chunk = keys.shape[-2], settings.chunk
        chunks = max(length // chunk - settings.local_chunks, 0)
        selectable = keys[:, :, : chunks * chunk]
        inside = None if padding is None else padding[:, : chunks * chunk]
        landmarks = landmarks_of(selectable, chunk, inside)
        outliers = outlier_chunks(selectable, landmarks, settings.outlier_chunks, inside)
        rows = _exact_rows(outliers, chunks, chunk, length)
        return cls(landmarks, outliers, take(keys, rows), take(values, rows), length=length, chunk=chunk)

    def exact_rows(self) -> Tensor:
        """The tokens kept exact, as an integer ``batch x heads x exact`` tensor."""
        return _exact_rows(self.outliers, self.landmarks.shape[2], self.chunk, self.length)

    def overlay(self, keys: Tensor, values: Tensor) -> None:
        """Write the exact tokens over the rebuilt ones of the same prompt, in place."""
        rows = self.exact_rows()[..., None]
        keys.scatter_(2, rows.expand_as(self.keys), self.keys)
        values.scatter_(2, rows.expand_as(self.values), self.values)

    def select(self, indices: Tensor) -> None:
        """Keep these batch rows, in this order."""
        for name, tensor in self.named().items():
            setattr(self, name, tensor.index_select(0, indices.to(tensor.device)))

    def repeat(self, repeats: int) -> None:
        """Repeat each batch row so many times."""
        for name, tensor in self.named().items():
            setattr(self, name, tensor.repeat_interleave(repeats, dim=0))

    def named(self) -> dict[str, Tensor]:
        """What it holds, by the names of its arguments."""
        return {
            "landmarks": self.landmarks,
            "outliers": self.outliers,
            "keys": self.keys,
            "values": self.values,
        }


def tokens_of(chunks: Tensor, chunk: int) -> Tensor:
    """The tokens of chunks.

    Args:
        chunks: An integer ``batch x heads x n`` tensor of chunk numbers.
        chunk: Tokens in a chunk.

    Returns:
        An integer ``batch x heads x (n chunk)`` tensor.
    """
    return (chunks[..., None] * chunk + torch.arange(chunk, device=chunks.device)).flatten(-2)


def take(states: Tensor, rows: Tensor) -> Tensor:
    """Rows of each head.

    Args:
        states: A ``batch x heads x length x width`` tensor.
        rows: An integer ``batch x heads x n`` tensor.

    Returns:
        A ``batch x heads x n x width`` tensor.
    """
    return states.gather(2, rows[..., None].expand(-1, -1, -1, states.shape[-1]))


def _exact_rows(outliers: Tensor, chunks: int, chunk: int, length: int) -> Tensor:
    batch, heads, _ = outliers.shape
    local = torch.arange(chunks * chunk, length, device=outliers.device)
    return torch.cat([tokens_of(outliers, chunk), local.expand(batch, heads, -1)], dim=-1)
