"""Where the work runs: the only place that builds an ``Accelerator``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import attrs

from . import registry
from .errors import PlacementError

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator

Strategy = Literal["auto", "cpu", "one", "ddp", "fsdp2"]
Precision = Literal["no", "bf16", "fp16", "fp8"]

_built: list[tuple[Placement, Accelerator]] = []


@attrs.frozen(kw_only=True)
class Placement:
    """How a piece of work is spread over devices.

    Args:
        strategy: ``cpu``; ``one`` device; ``ddp``, a copy on each; ``fsdp2``, shards over all; ``auto`` takes
            what the launcher and the machine give.
        processes: How many processes there must be; None takes what there is. It is checked, never assumed.
        precision: Mixed precision of the forward pass.
        seed: Seed of every random generator, the same on each process.
        compile: Whether models are compiled.
    """

    strategy: Strategy = attrs.field(
        default="auto", validator=attrs.validators.in_(("auto", "cpu", "one", "ddp", "fsdp2"))
    )
    processes: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1))
    )
    precision: Precision = attrs.field(
        default="no", validator=attrs.validators.in_(("no", "bf16", "fp16", "fp8"))
    )
    seed: int = 0
    compile: bool = False

    def accelerator(self) -> Accelerator:
        """The accelerator of this process, built the first time and the same one afterwards.

        Raises:
            PlacementError: If another placement is in force, or there are fewer processes or devices than asked.
        """
        if _built:
            placement, accelerator = _built[0]
            if placement != self:
                raise PlacementError(
                    f"this process is placed as {placement}, and {self} was asked for",
                    "use one placement in a process; start another process for another placement",
                )
            return accelerator
        self._seed()
        accelerator = registry.default().hook("separata_placement", placement=self) or self._build()
        self._check(accelerator)
        _built.append((self, accelerator))
        return accelerator

    def device(self) -> torch.device:
        """The device of single-process work, without building an accelerator."""
        import torch

        if self.strategy == "cpu" or not torch.accelerator.is_available():
            return torch.device("cpu")
        return torch.accelerator.current_accelerator() or torch.device("cpu")

    def _build(self) -> Accelerator:
        from accelerate import Accelerator
        from accelerate.utils import FullyShardedDataParallelPlugin, TorchDynamoPlugin

        if self.strategy == "fsdp2":
            self._need_accelerator_device()
        return Accelerator(
            cpu=self.strategy == "cpu",
            mixed_precision=self.precision,
            fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=2) if self.strategy == "fsdp2" else None,
            dynamo_plugin=TorchDynamoPlugin(backend="inductor") if self.compile else None,
        )

    def _seed(self) -> None:
        from accelerate.utils import set_seed

        set_seed(self.seed)

    def _need_accelerator_device(self) -> None:
        import torch

        if not torch.accelerator.is_available():
            raise PlacementError("fsdp2 was asked for, and there is no GPU here", "use --strategy cpu or ddp")

    def _check(self, accelerator: Accelerator) -> None:
        wanted = 1 if self.strategy == "one" else self.processes
        if wanted is not None and accelerator.num_processes != wanted:
            raise PlacementError(
                f"{wanted} processes were asked for, {accelerator.num_processes} are running",
                f"start them with torchrun --nproc-per-node {wanted}, or ask for {accelerator.num_processes}",
            )
        if self.strategy in ("ddp", "fsdp2") and "RANK" not in os.environ:
            raise PlacementError(
                f"{self.strategy} was asked for, and no launcher started this process",
                "start it with torchrun or accelerate launch",
            )


def current() -> Accelerator:
    """The accelerator in force, or that of the default placement if none was built yet."""
    return _built[0][1] if _built else Placement().accelerator()
