"""The routing of one layer step by step, with its statistics and the choice of k0."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import attrs
import torch
import torch.distributed
from torch import Tensor

from .config import OEAConfig
from .errors import InvalidScores, InvalidSetting
from .expert_parallel import owned_hits
from .latency import LatencyLine
from .routing import Routing, route

COUNTED = ("steps", "hit", "hit_squared", "plain_hit", "tokens", "k0")


@attrs.frozen(eq=False)
class StepScores:
    """What the scheduler sees of one decode step.

    Args:
        scores: A ``tokens x experts`` tensor that the router ranks by.
        active: A ``tokens`` bool tensor, False for padding and finished rows; all count if not given.
        mixing: A ``tokens x experts`` tensor that weights are made of; ``scores`` if not given.
        total: A ``tokens`` tensor: what the model's own weights sum to; 1 if not given.
        loaded: An ``experts`` bool tensor: who is loaded in any case.
        seconds: How long the step before this one took, for a target in seconds.
        target: Experts to stay within in this step, over the config's own.
    """

    scores: Tensor
    active: Tensor | None = attrs.field(default=None, kw_only=True)
    mixing: Tensor | None = attrs.field(default=None, kw_only=True)
    total: Tensor | None = attrs.field(default=None, kw_only=True)
    loaded: Tensor | None = attrs.field(default=None, kw_only=True)
    seconds: float | None = attrs.field(default=None, kw_only=True)
    target: float | Tensor | None = attrs.field(default=None, kw_only=True)


class BatchScheduler:
    """Opportunistic expert activation of one layer.

    Each step is routed by ``route``. With a target, k0 is chosen anew in each step from its own scores: the largest
    whose union keeps to it. A target in seconds becomes one in experts by a line through the steps so far.

    Args:
        k: Experts a token of the plain model.
        config: The settings.
        group: Ranks whose unions are joined where ``expert_parallel`` is ``global``; all ranks if not given.

    Raises:
        InvalidSetting: If a setting contradicts k.
    """

    def __init__(
        self,
        k: int,
        config: OEAConfig | None = None,
        *,
        group: torch.distributed.ProcessGroup | None = None,
    ) -> None:
        self.k, self.config = k, config or OEAConfig()
        self.k0 = k0_of(k, self.config)
        if self.config.expert_parallel == "global" and group is None:
            group = _everyone()
        self.group = group if self.config.expert_parallel == "global" else None
        self.line = LatencyLine()
        self.last_hit: Tensor | None = None
        self._counts = torch.zeros(len(COUNTED), dtype=torch.int64)

    @property
    def plain(self) -> bool:
        """Whether these settings change nothing: each token loads all its k experts."""
        config = self.config
        free = config.target is None and config.target_seconds is None and config.p == 1
        same = config.k_max in (None, self.k) and config.renorm == "model"
        return self.k0 == self.k and free and same

    def step(self, observation: StepScores) -> Routing:
        """Route one batch.

        Raises:
            InvalidScores: If scores are NaN or shapes don't fit.
            InvalidSetting: If a time is negative.
        """
        _check_shapes(observation)
        target = self._target(observation)
        routing = self._route(observation, target)
        if observation.seconds is not None and self.last_hit is not None:
            self.line.observe(self.last_hit, observation.seconds)
        self._count(routing, observation)
        return routing

    def _target(self, seen: StepScores) -> float | Tensor | None:
        if seen.seconds is not None and not 0 <= seen.seconds < math.inf:
            raise InvalidSetting(f"a step took {seen.seconds} seconds", "measure with a monotonic clock")
        if seen.target is not None:
            return seen.target
        if self.config.target_seconds is not None:
            return self.line.target(self.config.target_seconds)
        return self.config.target

    def _route(self, seen: StepScores, target: float | Tensor | None) -> Routing:
        config = self.config
        run = _compiled() if config.compiled else route
        return run(
            seen.scores,
            self.k,
            self.k0,
            active=seen.active,
            mixing=seen.mixing,
            total=seen.total if config.renorm == "model" else None,
            loaded=seen.loaded,
            target=target,
            p=config.p,
            k_max=config.k_max,
            max_rank=config.max_rank,
            pooled=not config.deterministic,
            shards=config.shards,
            group=self.group,
        )

    def _count(self, routing: Routing, seen: StepScores) -> None:
        hit = owned_hits(routing, self.config.shards).amax()
        tokens = seen.scores.new_full((), len(seen.scores)) if seen.active is None else seen.active.sum()
        added = torch.stack(
            [torch.ones_like(hit), hit, hit * hit, routing.load[-1], tokens.long(), routing.k0]
        )
        self._counts = self._counts.to(added.device) + added
        self.last_hit = hit

    def statistics(self) -> dict[str, float]:
        """Means over the steps so far; this waits for the device.

        ``experts_hit`` is T, ``experts_hit_sd`` its standard deviation over steps, ``plain_experts_hit`` what
        plain top-k would have loaded, ``ratio`` the quotient, ``tokens`` live tokens a step.
        """
        counts: dict[str, int] = dict(zip(COUNTED, self._counts.tolist(), strict=True))
        steps = counts["steps"]
        if not steps:
            return {"steps": 0}
        hit, plain = counts["hit"] / steps, counts["plain_hit"] / steps
        return {
            "steps": steps,
            "tokens": counts["tokens"] / steps,
            "k0": counts["k0"] / steps,
            "experts_hit": hit,
            "experts_hit_sd": math.sqrt(max(0.0, counts["hit_squared"] / steps - hit * hit)),
            "plain_experts_hit": plain,
            "ratio": hit / plain if plain else math.nan,
        }

    def state_dict(self) -> dict[str, Any]:
        """Statistics, the last step's experts, and the line: all that later steps depend on."""
        last = None if self.last_hit is None else self.last_hit.clone()
        return {"counts": self._counts.clone(), "last_hit": last, "line": self.line.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._counts, last = state["counts"].clone(), state["last_hit"]
        self.last_hit = None if last is None else last.clone()
        self.line.load_state_dict(state["line"])


def k0_of(k: int, config: OEAConfig) -> int:
    """The k0 that a config means for a router of k experts a token: half of them, rounded up, if it says nothing.

    Raises:
        InvalidSetting: If k0, k_max or max_rank contradict k.
    """
    k0 = config.k0 if config.k0 is not None else -(-k // 2)
    if k0 > k:
        raise InvalidSetting(f"k0 is {k0}", f"this model has {k} experts a token: k0 is 1 to {k}")
    if config.k_max is not None and config.k_max < k:
        raise InvalidSetting(f"k_max is {config.k_max}", f"it is at least the model's k, {k}")
    if config.max_rank is not None and config.max_rank < k0:
        raise InvalidSetting(f"max_rank is {config.max_rank}", f"it is at least k0, {k0}")
    return k0


def _check_shapes(seen: StepScores) -> None:
    if seen.mixing is not None and seen.mixing.shape != seen.scores.shape:
        raise InvalidScores(
            f"mixing has shape {tuple(seen.mixing.shape)}", f"give that of scores, {tuple(seen.scores.shape)}"
        )


def _everyone() -> torch.distributed.ProcessGroup:
    if not torch.distributed.is_initialized():
        raise InvalidSetting(
            "expert_parallel is global, and there is one process",
            "call torch.distributed.init_process_group first, or pass the group",
        )
    everyone: Any = torch.distributed.group.WORLD
    return everyone  # type: ignore[no-any-return]


@cache
def _compiled() -> Any:
    return torch.compile(route, fullgraph=True)
