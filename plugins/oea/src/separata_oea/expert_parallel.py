"""Expert parallelism: what one rank runs of a routing whose experts are owned in equal blocks.

Ranks that hold the same tokens (``expert_parallel="shared"``, as transformers' own expert parallelism) all come to
the same union, so each one's part of it is known without a message. Ranks that hold their own tokens and send them
to the owners (``"global"``) join their unions with one all-reduce of a number for each expert.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import InvalidSetting
from .routing import Routing


def owned_part(routing: Routing, rank: int, shards: int) -> tuple[Tensor, Tensor]:
    """Local indices and weights of the experts that a rank owns.

    The parts of all ranks, each run through its own experts, sum to the whole layer's output: weights are those
    of the whole.

    Args:
        routing: The routing of all experts.
        rank: Which block of experts.
        shards: How many blocks there are.

    Returns:
        A ``tokens x k_max`` int64 tensor counted from the block's first expert, the block's size where the expert
        is another rank's; and the weights, 0 there.

    Raises:
        InvalidSetting: If the blocks are not equal or the rank is none of them.
    """
    experts = len(routing.union)
    if experts % shards or not 0 <= rank < shards:
        raise InvalidSetting(
            f"rank {rank} of {shards} with {experts} experts", "ranks count from 0 and own equal blocks"
        )
    block = experts // shards
    local = routing.indices - rank * block
    owned = (local >= 0) & (local < block)
    return torch.where(owned, local, block), routing.weights.masked_fill(~owned, 0.0)


def owned_hits(routing: Routing, shards: int) -> Tensor:
    """How many experts each rank loads: a ``shards`` int64 tensor."""
    return routing.union.view(shards, -1).sum(1)
