"""A recipe that trains a causal language model on quantised weights, from scratch or from weights it has."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from separata.placement import Placement
from separata_kit_llm import tiny, token_nll
from separata_kit_llm.errors import TextTooShort

from .config import TrainConfig
from .conversion import convert_, quantised
from .errors import InvalidSetting
from .optimizers import ECOAdamW, ErrorCompensating
from .storage import load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from accelerate import Accelerator

CHECKPOINT = "checkpoint"


@attrs.frozen(kw_only=True)
class Trained:
    """What a training reports.

    Args:
        losses: Cross-entropy of each step in nats a token, before its update.
        rates: Learning rate of each step.
        held_out: Cross-entropy of text that training has not seen, after the last step.
        skipped: How often a weight was left alone because something was not finite.
        optimizer: The optimizer, with its moments.
    """

    losses: list[float]
    rates: list[float]
    held_out: float
    skipped: int
    optimizer: Optimizer


def train(
    model: Any,
    tokens: Tensor,
    config: TrainConfig | None = None,
    *,
    seed: int = 0,
    out: Path | str | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> Trained:
    """Convert a model's linear layers and train it: warm-up from 0, then a cosine.

    Weights of linear layers, but the head's, are quantised; all else gets plain AdamW in the model's own dtype.

    With a placement each process has the whole model and takes its share of every batch. Roundings are drawn alike
    on all of them, so that they hold the same codes, and the losses are those of one process.

    Args:
        model: A causal decoder of transformers; it is changed in place.
        tokens: The text, int64, shape (n,); its last part is held out.
        config: Settings.
        seed: Draws windows and roundings.
        out: Folder for checkpoints, under ``checkpoint``; none if not given.
        resume: Go on from the checkpoint in ``out``, if there is one: bit for bit as if nothing had happened.
        placement: Where the work runs; on the model's device, in this process alone, if not given.

    Returns:
        Losses, rates and the optimizer; the model is in evaluation mode.

    Raises:
        separata_kit_llm.errors.TextTooShort: If the text, or its held-out part, has no window.
        NothingToQuantise: If the model has no linear layer.
        ShapeMismatch: If the groups don't divide a row.
        BadCheckpoint: If the checkpoint is of another model.
        InvalidSetting: If the processes can't share a batch evenly.
        separata.errors.PlacementError: If the placement can't be had.
    """
    config = config or TrainConfig()
    accelerator = placement.accelerator() if placement else None
    if accelerator is not None:
        model.to(accelerator.device)
    prepare(model, config)
    optimizer = make_optimizer(model, config, seed)
    folder = None if out is None else Path(out) / CHECKPOINT
    begin = load_checkpoint(model, optimizer, folder) if resume and folder and folder.is_dir() else 0
    return run(
        model, optimizer, tokens, config, seed=seed, begin=begin, folder=folder, accelerator=accelerator
    )


def prepare(model: nn.Module, config: TrainConfig) -> None:
    """Quantise the weights that are not yet."""
    if not quantised(model):
        convert_(
            model,
            quantizer=config.quant,
            granularity=config.granularity or None,
            scale=config.scale,
            mismatch=config.mismatch,
        )


def make_optimizer(model: nn.Module, config: TrainConfig, seed: int) -> ECOAdamW:
    """The optimizer of a config; numbers, vectors and tables are not decayed, as is the custom."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
    return ECOAdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        rounding="stochastic" if config.rounding == "sr" else "nearest_even",
        compensation=config.compensation,
        momentum_dtype=config.momentum_dtype,
        seed=seed,
    )


def run(
    model: Any,
    optimizer: Optimizer,
    tokens: Tensor,
    config: TrainConfig,
    *,
    seed: int,
    begin: int = 0,
    folder: Path | None = None,
    accelerator: Accelerator | None = None,
) -> Trained:
    """The loop, with any optimizer.

    Args:
        model: A causal decoder.
        optimizer: Of its parameters.
        tokens: The text.
        config: Settings of the loop and its schedule.
        seed: Draws windows.
        begin: Steps that were taken already.
        folder: Where checkpoints are written, by the first process.
        accelerator: Of the processes that share each batch.
    """
    seen, unseen = tiny.held_out(tokens, config.held_out)
    if min(len(seen), len(unseen)) <= config.length:
        raise TextTooShort(
            f"{len(tokens)} tokens, of which {len(unseen)} are held out",
            f"both parts need more than {config.length} tokens: give a longer text or smaller --length",
        )
    batches = tiny.windows(
        seen, batch=config.batch, length=config.length, generator=torch.Generator().manual_seed(seed)
    )
    for _ in range(begin * config.accumulate):
        next(batches)
    share = _share(config, accelerator)
    shares = (ids[share] for ids in batches)
    shared = accelerator.prepare(model) if accelerator else model
    losses, rates = [], []
    model.train()
    for step in range(begin, config.steps):
        rates.append(_set_rate(optimizer, rate(step, config)))
        loss = _step(shared, optimizer, shares, config)
        losses.append(_mean(loss, accelerator))
        due = config.checkpoint_every and (step + 1) % config.checkpoint_every == 0
        first = accelerator is None or accelerator.is_main_process
        if (
            folder
            and first
            and isinstance(optimizer, ErrorCompensating)
            and (due or step + 1 == config.steps)
        ):
            settings = {**attrs.asdict(config), "seed": seed}
            save_checkpoint(model, optimizer, folder, step=step + 1, config=settings)
    model.train(False)
    return Trained(
        losses=losses,
        rates=rates,
        held_out=score(model, unseen, config),
        skipped=getattr(optimizer, "skipped_steps", 0),
        optimizer=optimizer,
    )


def rate(step: int, config: TrainConfig) -> float:
    """Learning rate of a step: 0 at first, ``lr`` after the warm-up, ``last_lr * lr`` at the end."""
    warm_up = round(config.warm_up * config.steps)
    if step < warm_up:
        return config.lr * step / warm_up
    progress = (step - warm_up) / max(1, config.steps - 1 - warm_up)
    share = config.last_lr + (1 - config.last_lr) * (1 + math.cos(math.pi * progress)) / 2
    return config.lr * share


def score(model: Any, tokens: Tensor, config: TrainConfig, batch: int = 64) -> float:
    """Cross-entropy in nats a token over all windows of a text, side by side."""
    count = len(tokens) // config.length
    windows = tokens[: count * config.length].view(count, config.length)
    total = sum(float(token_nll(model, ids.to(model.device)).sum()) for ids in torch.split(windows, batch))
    return total / (count * (config.length - 1))


def _share(config: TrainConfig, accelerator: Accelerator | None) -> slice:
    """The windows of each batch that are this process's."""
    if accelerator is None:
        return slice(None)
    if config.batch % accelerator.num_processes:
        raise InvalidSetting(
            f"{accelerator.num_processes} processes share batches of {config.batch} windows",
            "give a --batch that they divide",
        )
    return slice(accelerator.process_index, None, accelerator.num_processes)


def _step(model: Any, optimizer: Optimizer, batches: Iterable[Tensor], config: TrainConfig) -> Tensor:
    """Take one step; the loss of this process's windows."""
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros(())
    for _, ids in zip(range(config.accumulate), batches, strict=False):
        ids = ids.to(next(model.parameters()).device)
        loss = model(ids, labels=ids).loss / config.accumulate
        loss.backward()
        total = total.to(loss.device) + loss.detach()
    clip_grad_norm_(model.parameters(), config.clip)
    optimizer.step()
    return total


def _mean(loss: Tensor, accelerator: Accelerator | None) -> float:
    if accelerator is not None:
        loss = accelerator.reduce(loss, "mean")
    return float(loss)


def _set_rate(optimizer: Optimizer, value: float) -> float:
    for group in optimizer.param_groups:
        # Optimizers of torchao keep the rate in a tensor.
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(value)
        else:
            group["lr"] = value
    return value
