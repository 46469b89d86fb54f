"""What a cache knows of its tokens: their positions, and which of them are padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .errors import UnsupportedModel


class Timeline:
    """Positions of all cached tokens, one row a sequence, grown by one forward at a time.

    Models hand their position ids to the cache with the keys, and those are what RoPE used. generate() gives
    padding the position 0, left of a prompt's own 0 or right of its end; only that is taken for padding.
    """

    def __init__(self) -> None:
        self.positions: Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens seen."""
        return 0 if self.positions is None else self.positions.shape[-1]

    @property
    def horizon(self) -> int:
        """Largest position seen."""
        return 0 if self.positions is None or not self.positions.numel() else int(self.positions.max())

    def append(self, positions: Tensor | None, batch: int, count: int, device: torch.device) -> None:
        """Add the tokens of one forward.

        Args:
            positions: Their ``batch x count`` or ``1 x count`` position ids; None continues each row by one.
            batch: Sequences.
            count: Tokens of this forward.
            device: Where the keys are.

        Raises:
            UnsupportedModel: If positions have more than one component (multimodal RoPE).
        """
        if positions is None:
            start = torch.zeros(batch, 1, dtype=torch.int32, device=device)
            if self.positions is not None and self.length:
                start = self.positions.amax(-1, keepdim=True) + 1
            positions = start + torch.arange(count, dtype=torch.int32, device=start.device)
        if positions.dim() != 2:
            raise UnsupportedModel(
                f"position ids have shape {tuple(positions.shape)}", "use a model with one position a token"
            )
        positions = positions.to(device=device, dtype=torch.int32).expand(batch, -1)[:, -count:]
        held = [] if self.positions is None else [self.positions]
        self.positions = torch.cat([*held, positions], dim=-1)

    def padding(self, length: int) -> Tensor | None:
        """Which of the first tokens are padding.

        Returns:
            A boolean ``batch x length`` tensor, or None if there is no padding.
        """
        if self.positions is None or length < 2:
            return None
        zero = self.positions[:, :length] == 0
        leading = zero.cumprod(-1).bool()
        # Of the zeros at the start, the last belongs to the prompt's first token.
        left = leading & torch.nn.functional.pad(leading[:, 1:], (0, 1))
        right = zero & ~leading
        padding = left | right
        return padding if bool(padding.any()) else None

    def select(self, indices: Tensor) -> None:
        """Keep these rows, in this order."""
        if self.positions is not None:
            self.positions = self.positions.index_select(0, indices.to(self.positions.device))

    def repeat(self, repeats: int) -> None:
        """Repeat each row so many times."""
        if self.positions is not None:
            self.positions = self.positions.repeat_interleave(repeats, dim=0)

    def crop(self, count: int) -> None:
        """Forget the last tokens."""
        if self.positions is not None and count:
            self.positions = self.positions[:, : max(self.length - count, 0)].clone()

    def reset(self) -> None:
        """Forget everything."""
        self.positions = None

    def tensors(self) -> Iterator[Tensor]:
        """What it holds."""
        if self.positions is not None:
            yield self.positions


def positions_from_mask(attention_mask: Tensor) -> Tensor:
    """Position ids of padded prompts, as generate() forms them: counted over real tokens, 0 for padding.

    Args:
        attention_mask: A ``batch x length`` tensor, 0 where there is padding.
    """
    positions = attention_mask.long().cumsum(-1) - 1
    return positions.masked_fill(attention_mask == 0, 0)
