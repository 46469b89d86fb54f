"""Rivals that patch the same routers: plain top-k0, and subtracting the batch's least popular experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .config import OEAConfig
from .routing import Routing, route
from .scheduler import BatchScheduler, StepScores


class PopularExperts(BatchScheduler):
    """Keep the experts that most tokens of the batch have chosen, and drop the others.

    Lynx (Gupta et al., 2024, arXiv 2411.08982) reduces a batch's experts by subtraction: a token keeps those of its
    top-k that stay. One that loses all of them goes to its best expert among those that stay.

    Args:
        k: Experts a token of the plain model.
        experts: How many stay.
    """

    def __init__(self, k: int, experts: int) -> None:
        super().__init__(k, OEAConfig(k0=k))
        self.experts = experts

    @property
    def plain(self) -> bool:
        """Never: experts are dropped whatever k is."""
        return False

    def _route(self, seen: StepScores, target: Any) -> Routing:
        plain = route(seen.scores, self.k, self.k, active=seen.active)
        wanted = torch.where(plain.indices < seen.scores.shape[1], plain.indices, 0)
        counts = torch.zeros(seen.scores.shape[1], device=seen.scores.device)
        counts = counts.scatter_add(0, wanted.flatten(), torch.ones(wanted.numel(), device=counts.device))
        kept = torch.zeros_like(plain.union).scatter(0, counts.topk(self.experts).indices, True) & plain.union
        own = torch.zeros_like(seen.scores, dtype=torch.bool).scatter(1, wanted, True) & kept
        lost = ~own.any(1, keepdim=True)
        best = seen.scores.masked_fill(~kept, -torch.inf).argmax(1, keepdim=True)
        own = torch.where(lost, torch.zeros_like(own).scatter(1, best, True), own)
        found = route(
            seen.scores.masked_fill(~own, -torch.inf),
            self.k,
            self.k,
            mixing=seen.mixing if seen.mixing is not None else seen.scores,
            total=seen.total,
        )
        return found._replace(union=_live(own, seen.active), load=plain.load)


def _live(own: Tensor, active: Tensor | None) -> Tensor:
    return (own if active is None else own & active[:, None]).any(0)
