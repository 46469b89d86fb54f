"""Training of a network that ``modexify`` made: on one process or many, resumed bit for bit, the best step kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import torch
from accelerate.utils import send_to_device
from attrs.validators import ge, gt, in_, le, lt
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from separata import artifacts
from separata.placement import Placement

from .errors import InvalidSetting
from .head import MoDEXNetwork
from .loss import modex_loss

if TYPE_CHECKING:
    from accelerate import Accelerator

CHECKPOINT = "checkpoint"


@attrs.frozen(kw_only=True)
class TuneConfig:
    """How a network is trained.

    Args:
        steps: Optimizer steps.
        batch: Rows a step, over all processes.
        head_rate: Highest learning rate of the heads, in Adam.
        backbone_rate: Of all else; 0 leaves it as it is.
        warm_up: Share of the steps in which rates rise from 0; they fall to 0 afterwards.
        clip: Largest norm of all gradients together.
        validation: Share of rows held out to choose the best step; at 0 the last one is kept.
        evaluate_every: Steps between two looks at the held-out rows.
        checkpoint_every: Steps between checkpoints; 0 writes one at the end.
        workers: Processes that read rows.
        kind: Of ``modex_loss``, brier or nll.
    """

    steps: int = attrs.field(default=300, validator=ge(0))
    batch: int = attrs.field(default=16, validator=ge(1))
    head_rate: float = attrs.field(default=5e-4, validator=gt(0))
    backbone_rate: float = attrs.field(default=2e-5, validator=ge(0))
    warm_up: float = attrs.field(default=0.1, validator=[ge(0), le(1)])
    clip: float = attrs.field(default=5.0, validator=gt(0))
    validation: float = attrs.field(default=0.05, validator=[ge(0), lt(1)])
    evaluate_every: int = attrs.field(default=50, validator=ge(1))
    checkpoint_every: int = attrs.field(default=0, validator=ge(0))
    workers: int = attrs.field(default=0, validator=ge(0))
    kind: str = attrs.field(default="brier", validator=in_(("brier", "nll")))


@attrs.define
class Tuned:
    """What a training reports.

    Args:
        losses: Loss of each step that was taken now, before its update.
        best_step: Steps after which the network was kept.
        held_out: Loss of the held-out rows then; NaN if there are none.
    """

    losses: list[float] = attrs.field(factory=list)
    best_step: int = 0
    held_out: float = math.nan


@attrs.define
class _Progress:
    """Where a training is: what it reports, steps taken, and the tensors of the best of them."""

    report: Tuned = attrs.field(factory=Tuned)
    step: int = 0
    best: dict[str, Tensor] = attrs.field(factory=dict)

    def keep(self, model: nn.Module, score: float) -> None:
        """Keep the network if no earlier one scored as well; always, if there is no score."""
        if score >= self.report.held_out:
            return
        self.report.held_out, self.report.best_step = score, self.step
        if not math.isnan(score):
            self.best = {name: tensor.clone() for name, tensor in model.state_dict().items()}


class MoDEXTrainer:
    """Trains a network on rows of a map-style dataset; each process takes its share of every batch.

    Args:
        config: Settings.
        seed: Decides held-out rows, order and dropout.
        out: Folder for a ``checkpoint``; none if not given.
        collate: Makes a batch of rows, as in torch's ``DataLoader``.
    """

    def __init__(
        self,
        config: TuneConfig | None = None,
        *,
        seed: int = 0,
        out: Path | str | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.config = config or TuneConfig()
        self.seed = seed
        self.out = None if out is None else Path(out)
        self.collate = collate

    def fit(
        self,
        model: MoDEXNetwork,
        data: Dataset[Any],
        *,
        placement: Placement | None = None,
        resume: Path | str | None = None,
        until: int | None = None,
    ) -> Tuned:
        """Train; the network is changed in place and left in evaluation mode.

        Args:
            model: What ``modexify`` made.
            data: Pairs of what the network takes, a tensor or a mapping of tensors, and a class or a soft label.
            placement: Where the work runs; on the model's device, in this process alone, if not given.
            resume: Folder of an earlier training's ``out``; if it has a checkpoint, go on from there.
            until: Stop after this step, with a checkpoint, and leave the rest to a resumed training.

        Raises:
            InvalidSetting: If the processes can't share a batch evenly, or no row is left to train on.
            InvalidLabels: If labels are neither classes nor soft labels.
            UnstableHead: If a head's output is not finite.
        """
        accelerator = placement.accelerator() if placement else None
        if accelerator is not None:
            model.to(accelerator.device)
        optimizer = self._optimizer(model)
        progress = _Progress()
        if resume is not None and (Path(resume) / CHECKPOINT).is_dir():
            progress = _load(model, optimizer, Path(resume) / CHECKPOINT)
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            self._run(model, optimizer, data, accelerator, progress, self._end(until))
        if progress.best:
            model.load_state_dict(progress.best)
        model.eval()
        return progress.report

    def _run(
        self,
        model: MoDEXNetwork,
        optimizer: torch.optim.Optimizer,
        data: Any,
        accelerator: Accelerator | None,
        progress: _Progress,
        end: int,
    ) -> None:
        config = self.config
        rank, ranks = (accelerator.process_index, accelerator.num_processes) if accelerator else (0, 1)
        rows, held_out = self._split(len(data))
        shared = accelerator.prepare(model) if accelerator else model
        for inputs, labels in self._batches(data, rows, range(progress.step, end), rank, ranks):
            model.train()
            # Dropout is drawn anew in each step, so that a resumed run draws what the whole one did.
            torch.manual_seed(self.seed + ranks * progress.step + rank)
            _set_rates(optimizer, progress.step, config)
            optimizer.zero_grad()
            loss = self._loss(shared, inputs, labels)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            mean = accelerator.reduce(loss.detach(), "mean") if accelerator else loss.detach()
            progress.report.losses.append(float(mean))
            progress.step += 1
            if progress.step == config.steps or progress.step % config.evaluate_every == 0:
                progress.keep(model, self._score(model, data, held_out))
            due = progress.step == end or (
                config.checkpoint_every and progress.step % config.checkpoint_every == 0
            )
            if self.out is not None and rank == 0 and due:
                _save(model, optimizer, progress, self.out / CHECKPOINT)

    def _end(self, until: int | None) -> int:
        return self.config.steps if until is None else min(until, self.config.steps)

    def _optimizer(self, model: MoDEXNetwork) -> torch.optim.Optimizer:
        groups = (
            (model.head.parameters(), self.config.head_rate),
            (model.backbone.parameters(), self.config.backbone_rate),
        )
        return torch.optim.Adam(
            [{"params": list(parameters), "lr": rate, "highest": rate} for parameters, rate in groups if rate]
        )

    def _split(self, count: int) -> tuple[Tensor, Tensor]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.seed))
        held = int(count * self.config.validation)
        if count - held < 1:
            raise InvalidSetting(f"{count} rows, of which {held} are held out", "give more rows")
        return order[held:], order[:held]

    def _batches(self, data: Any, rows: Tensor, steps: range, rank: int, ranks: int) -> Iterator[Any]:
        """This process's share of each batch still to come; all rows are seen once before any is seen again."""
        config = self.config
        if config.batch % ranks:
            raise InvalidSetting(
                f"{ranks} processes share batches of {config.batch} rows", "give a batch that they divide"
            )
        generator = torch.Generator().manual_seed(self.seed + 1)
        passes = -(-config.steps * config.batch // len(rows))
        seen = [rows[torch.randperm(len(rows), generator=generator)] for _ in range(passes)]
        order = torch.cat([*seen, rows[:0]])[: config.steps * config.batch].view(config.steps, config.batch)
        sampler = [batch[rank::ranks].tolist() for batch in order[steps.start : steps.stop]]
        yield from DataLoader(
            data, batch_sampler=sampler, num_workers=config.workers, collate_fn=self.collate
        )

    def _loss(self, model: nn.Module, inputs: Any, labels: Tensor) -> Tensor:
        inputs, labels = send_to_device((inputs, labels), next(model.parameters()).device)
        found = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
        return modex_loss(found.law, labels, kind=self.config.kind)

    @torch.no_grad()
    def _score(self, model: MoDEXNetwork, data: Any, rows: Tensor) -> float:
        """Mean loss of some rows; NaN if there are none."""
        if not len(rows):
            return math.nan
        model.eval()
        total = 0.0
        for inputs, labels in DataLoader(
            Subset(data, rows.tolist()), batch_size=self.config.batch, collate_fn=self.collate
        ):
            total += float(self._loss(model, inputs, labels)) * len(labels)
        return total / len(rows)


def _set_rates(optimizer: torch.optim.Optimizer, step: int, config: TuneConfig) -> None:
    """Rise along a line from 0, and fall along one to 0."""
    rising = round(config.warm_up * config.steps)
    share = (
        (step + 1) / (rising + 1) if step < rising else (config.steps - step) / max(1, config.steps - rising)
    )
    for group in optimizer.param_groups:
        group["lr"] = group["highest"] * share


def _save(model: nn.Module, optimizer: torch.optim.Optimizer, progress: _Progress, folder: Path) -> None:
    moments = {
        f"optimizer.{index}.{name}": value
        for index, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    }
    report = progress.report
    artifacts.save(
        folder,
        slug="modex",
        kind=CHECKPOINT,
        tensors={
            **{f"model.{name}": tensor for name, tensor in model.state_dict().items()},
            **{f"best.{name}": tensor for name, tensor in progress.best.items()},
            **moments,
        },
        config={},
        extra={
            "step": progress.step,
            "best_step": report.best_step,
            # JSON has no NaN.
            "held_out": None if math.isnan(report.held_out) else report.held_out,
        },
    )


def _load(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> _Progress:
    """Go on from a checkpoint; network and optimizer are changed in place."""
    found = artifacts.load(folder, slug="modex", kind=CHECKPOINT)
    try:
        model.load_state_dict(_under("model.", found.tensors))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InvalidSetting(f"the model does not fit {folder}: {reason}", "give the same network") from error
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in _under("optimizer.", found.tensors).items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    held_out = found.extra["held_out"]
    report = Tuned(best_step=found.extra["best_step"], held_out=math.nan if held_out is None else held_out)
    return _Progress(report, int(found.extra["step"]), _under("best.", found.tensors))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
