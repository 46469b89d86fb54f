"""Attention over compressed states, rebuilding no more of them than it has to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .anatomy import ATTENTION
from .deferred import Deferred
from .errors import UnsupportedModel
from .layer import XKVLayer
from .rope import Tables
from .select_chunks import select_chunks
from .selective import tokens_of

ABSORBED_QUERIES = 16  # beyond, rebuilding the values once is cheaper than weighing rows for every query
UNKNOWN = ("softcap", "s_aux", "position_bias")


def xkv_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention function behind ``attn_implementation="separata_xkv"``.

    Exact states are attended to by PyTorch's scaled dot product; compressed ones by ``selective_attention`` for a
    single token in the modes sr and sr-offload, by ``dense_attention`` for a few tokens in mode dense, and rebuilt
    for more.

    Args:
        module: The model's attention module.
        query: A ``batch x query heads x tokens x head_dim`` tensor.
        key: A ``batch x heads x length x head_dim`` tensor, exact or a stand-in.
        value: The same of the values.
        attention_mask: None, or a boolean or additive ``batch x 1 x tokens x length`` tensor.
        dropout: Passed on with exact states; compressed ones are for inference.
        scaling: Factor on the products of queries and keys.
        kwargs: What else the model passes.

    Returns:
        A ``batch x tokens x query heads x head_dim`` tensor and None.

    Raises:
        UnsupportedModel: If the model wants soft-capped logits, attention sinks or a position bias.
    """
    for name in UNKNOWN:
        if kwargs.get(name) is not None:
            raise UnsupportedModel(
                f"this model's attention uses {name}", "use mode='dense' with the model's own attention"
            )
    if not isinstance(key, Deferred):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    layer, tables, tokens = key.layer, key.tables, query.shape[2]
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if layer.selective is not None and tokens == 1:
        mixed = selective_attention(query, layer, attention_mask, scaling)
    elif layer.selective is None and tokens <= ABSORBED_QUERIES:
        mixed = dense_attention(query, layer, tables, attention_mask, scaling)
    else:
        states = layer.states(tables)
        return sdpa_attention_forward(module, query, *states, attention_mask, scaling=scaling, **kwargs)
    return mixed.transpose(1, 2).contiguous(), None


def dense_attention(
    query: Tensor, layer: XKVLayer, tables: Tables | None, mask: Tensor | None, scaling: float
) -> Tensor:
    """Attend to every token; keys are rebuilt block by block, values never.

    The mixture of values ``p (A B)`` is computed as ``(p A) B``, so that a head costs ``length x rank`` and not
    ``length x rank x head_dim``.

    Args:
        query: A ``batch x query heads x tokens x head_dim`` tensor.
        layer: The layer.
        tables: Rotation tables of its compressed tokens.
        mask: As for ``xkv_attention``.
        scaling: Factor on the products.

    Returns:
        A ``batch x query heads x tokens x head_dim`` tensor.
    """
    group = layer.group
    assert group is not None
    assert group.values is not None
    heads, prompt = layer.keys.shape[1], layer.prompt_length
    grouped = _grouped(query, heads)
    logits = grouped.new_empty(*grouped.shape[:-1], layer.get_seq_length())
    for begin in range(0, prompt, group.block):
        end = min(begin + group.block, prompt)
        logits[..., begin:end] = grouped @ group.key_block(layer.slot, begin, end, tables).mT
    logits[..., prompt:] = grouped @ layer.keys.mT
    weights = _softmax(logits, mask, scaling)
    mixed = weights[..., :prompt].flatten(1, 2) @ group.values.rows
    mixed = mixed.view(*weights.shape[:-1], -1)
    mixed = mixed @ group.value_basis(layer.slot) + weights[..., prompt:] @ layer.values
    return mixed.reshape(*query.shape[:-1], -1)


def selective_attention(query: Tensor, layer: XKVLayer, mask: Tensor | None, scaling: float) -> Tensor:
    """Attend to the tokens that the query selects, to those kept exact, and to those generated.

    Only selected rows are read from the factors, and only their keys are rebuilt (selective reconstruction in xKV).

    Args:
        query: A ``batch x query heads x 1 x head_dim`` tensor.
        layer: The layer.
        mask: As for ``xkv_attention``.
        scaling: Factor on the products.

    Returns:
        A ``batch x query heads x 1 x head_dim`` tensor.
    """
    selective, heads = layer.selective, layer.keys.shape[1]
    assert selective is not None
    settings = layer.compressor.settings
    chunks = select_chunks(
        query[:, :, 0],
        selective.landmarks,
        settings.budget // settings.chunk,
        scaling=scaling,
        excluded=selective.outliers,
        allowed=_allowed_chunks(mask, selective.landmarks.shape[2], settings.chunk),
    )
    rows = tokens_of(chunks, settings.chunk)
    selected = rows.shape[-1]
    keys = torch.cat([_selected_keys(layer, rows), selective.keys, layer.keys], dim=2)
    mask = _gathered_mask(mask, layer, rows)
    weights = _softmax(_grouped(query, heads) @ keys.mT, mask, scaling)
    exact = torch.cat([selective.values, layer.values], dim=2)
    mixed = _selected_values(layer, rows, weights[..., :selected]) + weights[..., selected:] @ exact
    return mixed.reshape(*query.shape[:-1], -1)


@contextmanager
def attention_of(model: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """Let a model use this attention inside a ``with`` block, and its own again afterwards.

    Args:
        model: A transformers model.

    Raises:
        UnsupportedModel: If its attention can't be exchanged.
    """
    before = model.config._attn_implementation
    model.set_attn_implementation(ATTENTION)
    if model.config._attn_implementation != ATTENTION:
        raise UnsupportedModel(
            f"{type(model).__name__} does not let its attention be exchanged",
            "use mode='dense' without this block",
        )
    try:
        yield model
    finally:
        model.set_attn_implementation(before)


def _grouped(query: Tensor, heads: int) -> Tensor:
    """Queries under their key-value head: ``batch x heads x (group tokens) x head_dim``."""
    batch, _, _, head_dim = query.shape
    return query.reshape(batch, heads, -1, head_dim)


def _softmax(logits: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Weights in the dtype of the logits, formed in float32.

    Args:
        logits: A ``batch x heads x (group tokens) x length`` tensor.
        mask: None, or a boolean or additive tensor that broadcasts to ``batch x heads x tokens x length``.
        scaling: Factor on the logits.
    """
    scaled = logits.float() * scaling
    if mask is not None:
        grouped = scaled.view(*scaled.shape[:2], -1, mask.shape[2], scaled.shape[-1])
        if mask.dtype == torch.bool:
            grouped = grouped.masked_fill(~mask[:, :, None], -math.inf)
        else:
            grouped = grouped + mask[:, :, None]
        scaled = grouped.flatten(2, 3)
    return scaled.softmax(-1).to(logits.dtype)


def _selected_keys(layer: XKVLayer, rows: Tensor) -> Tensor:
    group, timeline = layer.group, layer.compressor.timeline
    assert group is not None
    assert timeline.positions is not None
    batch, heads, count = rows.shape
    keys = _factor_rows(group.keys.rows, rows) @ group.key_basis(layer.slot)
    rotation = group.rotations[layer.slot]
    positions = timeline.positions.to(rows.device).gather(1, rows.flatten(1)).view(batch * heads, count)
    tables = rotation.tables(positions, group.horizon)
    # Each head has positions of its own, so heads take the place of batch rows.
    return rotation.rotate(keys.flatten(0, 1)[:, None], tables).view_as(keys)


def _selected_values(layer: XKVLayer, rows: Tensor, weights: Tensor) -> Tensor:
    if layer.offloaded is not None:
        return weights @ layer.values_at(rows)
    group = layer.group
    assert group is not None
    assert group.values is not None
    return (weights @ _factor_rows(group.values.rows, rows)) @ group.value_basis(layer.slot)


def _factor_rows(factor: Tensor, rows: Tensor) -> Tensor:
    """Rows of a shared ``batch x length x rank`` factor for each head: ``batch x heads x n x rank``."""
    batch = torch.arange(factor.shape[0], device=factor.device)[:, None, None]
    return factor[batch, rows]


def _allowed_chunks(mask: Tensor | None, chunks: int, chunk: int) -> Tensor | None:
    if mask is None:
        return None
    visible = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    allowed: Tensor = visible[:, 0, 0, : chunks * chunk].reshape(-1, chunks, chunk).any(-1)
    return allowed


def _gathered_mask(mask: Tensor | None, layer: XKVLayer, rows: Tensor) -> Tensor | None:
    """The columns of the mask that a selective step attends to."""
    if mask is None:
        return None
    selective = layer.selective
    assert selective is not None
    tail = torch.arange(layer.prompt_length, mask.shape[-1], device=rows.device)
    columns = torch.cat([rows, selective.exact_rows(), tail.expand(*rows.shape[:2], -1)], dim=-1)
    spread = mask[:, :1].expand(rows.shape[0], rows.shape[1], 1, -1)
    return spread.gather(-1, columns[:, :, None])


AttentionInterface.register(ATTENTION, xkv_attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
