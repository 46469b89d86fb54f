"""Which chunks of a prompt a query needs, judged by one landmark a chunk."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def landmarks_of(keys: Tensor, chunk: int, padding: Tensor | None = None) -> Tensor:
    """The mean rotated key of each chunk (ShadowKV, arXiv 2410.21465).

    Args:
        keys: A ``batch x heads x length x head_dim`` tensor; its length is a multiple of ``chunk``.
        chunk: Tokens in a chunk.
        padding: A boolean ``batch x length`` tensor, True for tokens that don't count.

    Returns:
        A ``batch x heads x chunks x head_dim`` tensor in the dtype of the keys; 0 for a chunk of padding only.
    """
    batch, heads, length, head_dim = keys.shape
    chunked = keys.view(batch, heads, length // chunk, chunk, head_dim).float()
    if padding is None:
        return chunked.mean(-2).to(keys.dtype)
    real = (~padding).view(batch, 1, length // chunk, chunk, 1).float()
    return ((chunked * real).sum(-2) / real.sum(-2).clamp_min(1)).to(keys.dtype)


def outlier_chunks(keys: Tensor, landmarks: Tensor, count: int, padding: Tensor | None = None) -> Tensor:
    """The chunks that their landmark represents worst: those with the lowest cosine to any of their members.

    Args:
        keys: A ``batch x heads x length x head_dim`` tensor.
        landmarks: A ``batch x heads x chunks x head_dim`` tensor.
        count: Chunks to return; at most all.
        padding: A boolean ``batch x length`` tensor, True for tokens that don't count.

    Returns:
        An integer ``batch x heads x count`` tensor of chunk numbers, in rising order.
    """
    batch, heads, chunks, head_dim = landmarks.shape
    if not chunks:
        return torch.zeros(batch, heads, 0, dtype=torch.long, device=keys.device)
    members = keys.view(batch, heads, chunks, -1, head_dim).float()
    cosine = torch.nn.functional.cosine_similarity(members, landmarks[..., None, :].float(), dim=-1)
    if padding is not None:
        cosine = cosine.masked_fill(padding.view(batch, 1, chunks, -1), math.inf)
    return cosine.amin(-1).topk(min(count, chunks), largest=False).indices.sort(-1).values


def select_chunks(
    queries: Tensor,
    landmarks: Tensor,
    count: int,
    *,
    scaling: float | None = None,
    excluded: Tensor | None = None,
    allowed: Tensor | None = None,
) -> Tensor:
    """The chunks with the highest attention, for each key-value head (as in ShadowKV).

    Each query head spreads a softmax over the landmarks of its key-value head; a chunk's score is the largest
    share that any query head of the group gives it.

    Args:
        queries: A ``batch x query heads x head_dim`` tensor of rotated queries.
        landmarks: A ``batch x heads x chunks x head_dim`` tensor.
        count: Chunks to select; at most those that are not excluded.
        scaling: Factor on the products; ``head_dim ** -0.5`` if not given.
        excluded: An integer ``batch x heads x n`` tensor of chunks that are attended to anyway.
        allowed: A boolean ``batch x chunks`` tensor, False for chunks of padding.

    Returns:
        An integer ``batch x heads x count`` tensor of chunk numbers, in rising order.
    """
    batch, heads, chunks, head_dim = landmarks.shape
    count = max(min(count, chunks - (0 if excluded is None else excluded.shape[-1])), 0)
    grouped = queries.reshape(batch, heads, -1, head_dim)
    logits = (grouped @ landmarks.mT).float() * (head_dim**-0.5 if scaling is None else scaling)
    if excluded is not None:
        logits = logits.scatter(-1, excluded[:, :, None].expand(-1, -1, grouped.shape[2], -1), -math.inf)
    if allowed is not None:
        logits = logits.masked_fill(~allowed[:, None, None], -math.inf)
    # A row without any allowed chunk has no softmax; zeros keep it out of the result of the others.
    scores = logits.softmax(-1).nan_to_num(0.0).amax(2)
    if excluded is not None:
        scores = scores.scatter(-1, excluded, -1.0)
    return scores.topk(count).indices.sort(-1).values


def select_chunks_reference(
    queries: Tensor,
    landmarks: Tensor,
    count: int,
    *,
    scaling: float | None = None,
    excluded: Tensor | None = None,
    allowed: Tensor | None = None,
) -> Tensor:
    """The same, one head at a time in float64.

    Args:
        queries: A ``batch x query heads x head_dim`` tensor.
        landmarks: A ``batch x heads x chunks x head_dim`` tensor.
        count: Chunks to select.
        scaling: Factor on the products.
        excluded: An integer ``batch x heads x n`` tensor of chunks to leave out.
        allowed: A boolean ``batch x chunks`` tensor.
    """
    batch, heads, chunks, head_dim = landmarks.shape
    group = queries.shape[1] // heads
    rows = []
    for row in range(batch):
        for head in range(heads):
            left_out = set() if excluded is None else set(excluded[row, head].tolist())
            candidates = [chunk for chunk in range(chunks) if chunk not in left_out]
            barred = {c for c in candidates if allowed is not None and not bool(allowed[row, c])}
            open_chunks = [chunk for chunk in candidates if chunk not in barred]
            score = dict.fromkeys(candidates, 0.0)
            for query in queries[row, head * group : (head + 1) * group].double():
                logits = landmarks[row, head, open_chunks].double() @ query
                shares = (logits * (head_dim**-0.5 if scaling is None else scaling)).softmax(0)
                for chunk, share in zip(open_chunks, shares.tolist(), strict=True):
                    score[chunk] = max(score[chunk], share)
            best = sorted(candidates, key=lambda chunk: -score[chunk])[: max(min(count, len(candidates)), 0)]
            rows.append(sorted(best))
    return torch.tensor(rows, dtype=torch.long).reshape(batch, heads, -1)
