"""A transformers model whose routers load fewer experts in decode steps, for the length of a ``with`` block."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn

from separata_kit_llm import Hook, Wrap, patched

from .config import OEAConfig
from .errors import RouterMismatch
from .latency import LatencyLine
from .routers import Scores, Scoring, routers_of
from .routing import Routing
from .scheduler import BatchScheduler, StepScores, k0_of
from .steps import Step, padding_of, step_of, warn_of_padding

MakeScheduler = Callable[[int], Any]


@contextmanager
def patch_moe(
    model: nn.Module,
    config: OEAConfig | None = None,
    *,
    group: torch.distributed.ProcessGroup | None = None,
    scheduler: MakeScheduler | None = None,
) -> Iterator[ExpertActivation]:
    """Route the decode steps of a model by opportunistic expert activation, and undo that at the end of the block.

    Prompts are left alone bit for bit, and so are weights, shared experts and ``state_dict``. Works with
    ``generate``, beams and sampling: all rows of a step make one batch. Its tokens then depend on who else is in
    the batch; ``OEAConfig(deterministic=True)`` routes each row alone.

    Args:
        model: A mixture of experts of transformers, or one whose router is registered.
        config: The settings.
        group: Ranks whose unions are joined where ``expert_parallel`` is ``global``.
        scheduler: Makes another scheduler from a router's k; ``BatchScheduler`` with the config if not given.

    Yields:
        What decides and counts: ``rows()`` and ``summary()`` say how many experts were loaded.

    Raises:
        NoRouter: If the model has no known router.
        InvalidSetting: If the settings contradict a router's k.

    >>> from separata_kit_llm import tiny
    >>> model = tiny.qwen3_moe(seed=0)
    >>> prompt = tiny.byte_tokens("Two rows Two more").reshape(-1, 1)[:16].reshape(2, 8)
    >>> with patch_moe(model, OEAConfig(k0=2)) as activation:
    ...     _ = model.generate(prompt, max_new_tokens=4, do_sample=False)
    >>> activation.summary()["steps"]
    3
    """
    settings = config or OEAConfig()
    routers = list(routers_of(model))
    for _, router, _ in routers:
        k = getattr(router, "top_k", None)
        if isinstance(k, int) and scheduler is None:
            k0_of(k, settings)
    make = scheduler or partial(_scheduler, settings, group)
    activation = ExpertActivation(model, settings, make)
    wraps = [
        Wrap(name, partial(activation._routed, name, router, scoring)) for name, router, scoring in routers
    ]
    with patched(
        model,
        Hook(lambda _, module: module is model, activation._before, when="before"),
        Hook(lambda _, module: module is model, activation._after),
        *wraps,
    ):
        yield activation


class ExpertActivation:
    """The routers of one patched model at work; made by ``patch_moe``.

    Attributes:
        schedulers: Name of a router to its scheduler, from its first decode step on.
        line: Seconds of a layer against experts, where there is a target in seconds.
    """

    def __init__(self, model: nn.Module, config: OEAConfig, make: MakeScheduler) -> None:
        self.config = config
        self.schedulers: dict[str, Any] = {}
        self.line = LatencyLine()
        self._make = make
        self._padding = padding_of(model)
        self._names = list(inspect.signature(model.forward).parameters)
        self._step: Step | None = None
        self._said: Step | None = None
        self._warned = False
        self._began = 0.0
        self._target: Tensor | None = None

    @contextmanager
    def step(self, *, decoding: Tensor | None = None, active: Tensor | None = None) -> Iterator[None]:
        """Say what the forwards in this block are, for engines and modules that don't call the whole model.

        Args:
            decoding: A ``tokens`` bool tensor, False for tokens of prompts; all decode if not given.
            active: A ``tokens`` bool tensor, False for padding and finished rows; all are live if not given.
        """
        before = self._said, self._step
        self._said = self._step = Step(decoding, active)
        try:
            yield
        finally:
            self._said, self._step = before

    def rows(self) -> list[dict[str, Any]]:
        """One row of statistics a router; see ``BatchScheduler.statistics``."""
        return [{"layer": name, **one.statistics()} for name, one in self.schedulers.items()]

    def summary(self) -> dict[str, float]:
        """The means over the routers."""
        rows = [row for row in self.rows() if row["steps"]]
        if not rows:
            return {"steps": 0}
        found = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0] if name != "layer"}
        hit, plain = found["experts_hit"], found["plain_experts_hit"]
        return {**found, "steps": rows[0]["steps"], "ratio": hit / plain if plain else math.nan}

    def last_hit(self) -> Tensor:
        """Experts that each router loaded in the last decode step, int64; this does not wait for the device."""
        hits = [one.last_hit for one in self.schedulers.values()]
        # Layers may be spread over devices.
        return torch.stack([hit.to(hits[0].device, non_blocking=True) for hit in hits])

    def _before(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        arguments = {**dict(zip(self._names, args, strict=False)), **kwargs}
        if self._said is not None:
            self._step = self._said
        else:
            self._step = step_of(arguments, positions=self.config.positions, padding=self._padding)
        if self._step is None and not self._warned:
            self._warned = warn_of_padding(arguments, model)
        if self.config.target_seconds is not None and self._step is not None:
            layers = max(1, len(self.schedulers))
            self._target = self.line.target(self.config.target_seconds / layers)
            self._began = clock(model)

    def _after(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if self.config.target_seconds is not None and self._step is not None and self.schedulers:
            # A line through all layers' sums: one layer's experts alone explain little of a step's time.
            layers = len(self.schedulers)
            self.line.observe(self.last_hit().double().mean(), (clock(model) - self._began) / layers)
        self._step = self._said

    def _routed(
        self,
        name: str,
        router: nn.Module,
        scoring: Scoring,
        original: Callable[..., Any],
        hidden_states: Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        output = original(hidden_states, *args, **kwargs)
        if self._step is None:
            return output
        logits, weights, indices, *others = output
        scores = scoring(router, logits, *args, *kwargs.values())
        if name not in self.schedulers:
            _check_scoring(name, router, scores, indices)
            self.schedulers[name] = self._make(indices.shape[1])
        one, step = self.schedulers[name], self._step
        routing = one.step(_observed(scores, weights, indices, step, self._target))
        if getattr(one, "plain", False):
            return output
        mixed, found = _as_model(routing, weights, indices, step.decoding)
        if step.decoding is None and self.config.expert_parallel == "shared":
            # Few rows can't fill all places: a lone row has k0 experts, and needs no more columns.
            columns = len(found) * getattr(one, "k0", indices.shape[1])
            mixed, found = mixed[:, :columns], found[:, :columns]
        return logits, mixed, found, *others


def _scheduler(config: OEAConfig, group: torch.distributed.ProcessGroup | None, k: int) -> BatchScheduler:
    return BatchScheduler(k, config, group=group)


def _observed(
    scores: Scores, weights: Tensor, indices: Tensor, step: Step, target: Tensor | None
) -> StepScores:
    active, loaded = step.active, None
    if step.decoding is not None:
        # What prompts in the same batch load is there for the others to join.
        prompt = ~step.decoding if active is None else ~step.decoding & active
        experts = scores.selection.shape[1]
        place = torch.where(prompt[:, None], indices, experts).flatten()
        loaded = torch.zeros(experts + 1, dtype=torch.bool, device=indices.device)
        loaded = loaded.scatter(0, place, True)[:experts]
        active = step.decoding if active is None else step.decoding & active
    return StepScores(
        scores.selection,
        active=active,
        mixing=scores.mixing,
        total=weights.float().sum(-1),
        loaded=loaded,
        target=None if target is None else target.to(indices.device),
    )


def _as_model(
    routing: Routing, weights: Tensor, indices: Tensor, decoding: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Weights and indices as the model's experts take them.

    Not every implementation of experts in transformers skips the index N. A place without an expert gets the
    token's best one again, or any that is loaded, with weight 0: nothing more is loaded for it.
    """
    experts = len(routing.union)
    best = routing.indices[:, :1]
    spare = torch.where(best == experts, routing.union.long().argmax(), best)
    found = torch.where(routing.indices == experts, spare, routing.indices)
    mixed = routing.weights.to(weights.dtype)
    if decoding is not None:
        short = found.shape[1] - indices.shape[1]
        own = torch.cat([indices, indices[:, :1].expand(-1, short)], dim=1)
        found = torch.where(decoding[:, None], found, own)
        mixed = torch.where(decoding[:, None], mixed, torch.nn.functional.pad(weights, (0, short)))
    return mixed, found


def _check_scoring(name: str, router: nn.Module, scores: Scores, indices: Tensor) -> None:
    """Hold the router's choice against the scoring's, once: another version of it could rank by something else."""
    best = scores.selection.topk(indices.shape[1]).values.sort().values
    if not torch.equal(scores.selection.gather(1, indices).sort().values, best):
        raise RouterMismatch(
            f"{name} ({type(router).__name__}) chooses other experts than its scoring",
            "register one that ranks as it does: separata_oea.register_router(cls, scoring)",
        )


def clock(model: nn.Module) -> float:
    """The time once the device has done what it was given."""
    device = next((parameter.device for parameter in model.parameters()), None)
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
