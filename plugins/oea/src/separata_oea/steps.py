"""Telling decode steps from prompts, and live rows from padding, by what a model's forward is given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import Cache

from .errors import PaddingUnmasked


class Step(NamedTuple):
    """A forward that decodes.

    Args:
        decoding: A ``tokens`` bool tensor, False for tokens of prompts in the same batch; None if there are none.
        active: A ``tokens`` bool tensor, False for padding and finished rows; None if there are none.
    """

    decoding: Tensor | None = None
    active: Tensor | None = None


def step_of(arguments: Mapping[str, Any], *, positions: int = 1, padding: int | None = None) -> Step | None:
    """What kind of forward these arguments make; None for a prompt, which is left alone.

    A decode step has at most ``positions`` new tokens a row and a cache with something in it. In a packed batch
    (``cu_seq_lens_q``) the rows of at most so many tokens decode, whatever else it holds.

    Args:
        arguments: The forward's arguments by name.
        positions: Most new tokens a row of a decode step.
        padding: The token that fills finished rows; None if there is none.
    """
    packed = arguments.get("cu_seq_lens_q")
    ids, embeds = arguments.get("input_ids"), arguments.get("inputs_embeds")
    tokens = ids if ids is not None else embeds
    if tokens is None:
        return None
    batch, length = tokens.shape[:2]
    if packed is not None:
        return _packed(packed, batch * length, positions)
    cache = next((value for value in arguments.values() if isinstance(value, Cache)), None)
    if length > positions or cache is None or not cache.get_seq_length():
        return None
    active = None
    mask = arguments.get("attention_mask")
    if isinstance(mask, Tensor) and mask.dim() == 2:
        active = mask[:, -length:].bool()
    # A row that has ended is fed padding, which generate() masks as if it were text.
    if ids is not None and padding is not None and length == 1:
        active = ids != padding if active is None else active & (ids != padding)
    return Step(None, None if active is None else active.flatten())


def padding_of(model: nn.Module) -> int | None:
    """The token that generate() feeds to rows that have ended."""
    for settings in (getattr(model, "generation_config", None), getattr(model, "config", None)):
        for name in ("pad_token_id", "eos_token_id"):
            found = getattr(settings, name, None)
            if found is not None:
                return int(found[0] if isinstance(found, list | tuple) else found)
    return None


def warn_of_padding(arguments: Mapping[str, Any], model: nn.Module) -> bool:
    """Warn if a prompt holds padding and no mask; whether it did. This looks at the tokens, so it waits for them."""
    ids, mask = arguments.get("input_ids"), arguments.get("attention_mask")
    config = getattr(model, "config", None)
    padding = getattr(config, "pad_token_id", None)
    marks = [getattr(config, "bos_token_id", None), getattr(config, "eos_token_id", None)]
    if ids is None or mask is not None or padding is None or padding in marks or ids.shape[1] < 2:
        return False
    if not bool((ids[:, [0, -1]] == padding).any()):
        return False
    warnings.warn(
        f"the batch holds padding (token {padding}) and no attention_mask: padding counts as text, so more experts "
        "are loaded than need be; pass the tokenizer's attention_mask",
        PaddingUnmasked,
        stacklevel=2,
    )
    return True


def _packed(boundaries: Tensor, tokens: int, positions: int) -> Step:
    """Rows of a packed batch, of which ``boundaries`` are the running sums; what lies behind the last is padding."""
    place = torch.arange(tokens, device=boundaries.device)
    row = torch.searchsorted(boundaries[1:].contiguous(), place, right=True)
    lengths = torch.nn.functional.pad(boundaries.diff(), (0, 1))
    length = lengths[row.clamp(max=len(lengths) - 1)]
    return Step((length >= 1) & (length <= positions), length >= 1)
