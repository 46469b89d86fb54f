"""The words of ``separata eco``: train, memory, drift."""

from __future__ import annotations

import csv
import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from separata import verbs
from separata.files import atomic_file

from .config import TrainConfig

if TYPE_CHECKING:
    from .training import Trained

LOSSES = "loss.csv"

app = verbs.app("Train language models on quantised weights, without master weights.")

Model = Annotated[
    str, typer.Option("--model", help="A Hugging Face folder, a .gguf file, a hub id, smollm2, or tiny.")
]
Source = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A Hugging Face folder, a .gguf file, a hub id, smollm2, or tiny."),
]
Data = Annotated[
    str, typer.Option("--data", help="A .txt, .md, .jsonl or .gz file, or python-topics or shakespeare.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ...")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it, .png or .pdf.")]


@app.command()
@verbs.configured(TrainConfig)
def train(
    *,
    config: verbs.Resolved[TrainConfig],
    model: Model = "tiny",
    data: Data = "python-topics",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for loss.csv, summary.json, weights and checkpoint.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the model, dequantised, as a Hugging Face folder.")
    ] = None,
    plot: Plot = None,
    device: Device = "cpu",
    ddp: Annotated[
        bool, typer.Option("--ddp", help="Share each batch with the other processes that torchrun started.")
    ] = False,
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Train on quantised weights: from scratch with `tiny`, a byte-level Llama, or fine-tune a model.

    Example: separata eco train --model tiny --data python-topics --quant fp8_e4m3 --rounding sr --steps 20 --out run
    """
    from separata import Placement

    from .memory import memory_report
    from .training import train as fit

    placement = Placement(strategy="ddp", seed=seed) if ddp else None
    language_model, tokenizer, tokens = _loaded(model, data, device, seed)
    found = fit(language_model, tokens, config.value, seed=seed, out=out, resume=resume, placement=placement)
    first = placement is None or placement.accelerator().is_main_process
    if placement is not None:
        placement.accelerator().wait_for_everyone()
        placement.accelerator().end_training()
    if not first:
        return
    report = memory_report(language_model, found.optimizer)
    summary = {
        "held_out_nats": found.held_out,
        "first_loss": found.losses[0] if found.losses else None,
        "last_loss": found.losses[-1] if found.losses else None,
        "steps": config.value.steps,
        "skipped": found.skipped,
        "bytes": report["total"] - report["gradients"],
    }
    before = _earlier_losses(out, config.value.steps - len(found.losses))
    rows = [*before, *_losses(found, config.value.steps - len(found.losses))]
    if out is not None:
        _write_run(language_model, rows, summary, {"model": model, "data": data}, out)
    if plot is not None:
        from . import plots

        plots.losses(rows, found.held_out, plot)
    if export is not None:
        _export(language_model, tokenizer, export)
    verbs.show(summary, json=json, title=f"{model} on {config.value.quant}")


@app.command()
@verbs.configured(TrainConfig)
def memory(
    model: Source,
    *,
    config: verbs.Resolved[TrainConfig],
    data: Data = "python-topics",
    device: Device = "cpu",
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Take one step and count the bytes of every tensor that training holds, beside those with master weights.

    Example: separata eco memory tiny --quant fp8_e4m3 --batch 1 --length 16
    """
    from .memory import memory_report
    from .training import train as fit

    columns = {}
    for compensation in dict.fromkeys((config.value.compensation, "master")):
        language_model, _, tokens = _loaded(model, data, device, seed)
        # The first rate of a warm-up is 0, at which no weight moves.
        settings = attrs.evolve(config.value, compensation=compensation, steps=1, warm_up=0.0)
        found = fit(language_model, tokens[: 40 * settings.length], settings, seed=seed)
        columns[compensation] = memory_report(language_model, found.optimizer)
    rows = [
        {"kind": kind, **{name: report[kind] for name, report in columns.items()}}
        for kind in next(iter(columns.values()))
    ]
    verbs.show(rows, json=json, title=f"Bytes of {model} after a step on {config.value.quant}")


@app.command()
def drift(
    model: Source,
    *,
    data: Data = "python-topics",
    quant: Annotated[
        str, typer.Option("--quant", help="fp8_e4m3, int8, int4, mixfp4 or nvfp4.")
    ] = "fp8_e4m3",
    granularity: Annotated[
        str, typer.Option("--granularity", help="tensor, row or a number; the format's own if not given.")
    ] = "",
    rounding: Annotated[str, typer.Option("--rounding", help="sr or rtn.")] = "sr",
    lr: Annotated[float, typer.Option("--lr", help="Learning rate.")] = 1e-3,
    steps: Annotated[int, typer.Option("--steps", min=3, help="Steps to follow.")] = 8,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Windows a step.")] = 8,
    length: Annotated[int, typer.Option("--length", min=2, help="Tokens a window.")] = 64,
    plot: Plot = None,
    device: Device = "cpu",
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Tell for each weight how alike the rounding errors of successive steps are.

    Example: separata eco drift tiny --quant fp8_e4m3 --rounding rtn --steps 4
    """
    import torch

    from separata_kit_llm import tiny

    from .drift import ErrorDrift

    language_model, _, tokens = _loaded(model, data, device, seed)
    batches = tiny.windows(tokens, batch=batch, length=length, generator=torch.Generator().manual_seed(seed))
    fitted = ErrorDrift(
        language_model,
        quantizer=quant,
        granularity=granularity or None,
        lr=lr,
        rounding={"sr": "stochastic", "rtn": "nearest_even"}.get(rounding, rounding),
        seed=seed,
    ).fit([next(batches).to(device) for _ in range(steps)])
    if plot is not None:
        from . import plots

        plots.drift(fitted.rows_, plot)
    verbs.show(fitted.rows_, json=json, title=f"Errors of successive steps, {steps} steps of {model}")


def _loaded(model: str, data: str, device: str, seed: int) -> tuple[Any, Any, Any]:
    """The model, its tokenizer if it has one, and the text's tokens."""
    from separata_kit_llm import load, read_text, tiny

    text = read_text(data)
    if model == "tiny":
        made = tiny.llama(seed=seed, hidden=64, layers=2).to(device)  # type: ignore[arg-type]
        return made, None, tiny.byte_tokens(text)
    language_model, tokenizer = load(model, device=device)
    encoded: Any = tokenizer(text, return_tensors="pt", verbose=False)
    return language_model, tokenizer, encoded.input_ids[0]


def _losses(found: Trained, begin: int) -> list[dict[str, Any]]:
    return [
        {"step": step, "lr": lr, "loss": loss}
        for step, (lr, loss) in enumerate(zip(found.rates, found.losses, strict=True), begin)
    ]


def _earlier_losses(out: Path | None, begin: int) -> list[dict[str, Any]]:
    """What the run that is resumed wrote of its steps."""
    if out is None or not begin or not (out / LOSSES).is_file():
        return []
    with (out / LOSSES).open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if int(row["step"]) < begin]


def _write_run(
    model: Any, rows: list[dict[str, Any]], summary: dict[str, Any], source: dict[str, str], out: Path
) -> None:
    from .storage import save_weights

    save_weights(model, out / "weights", config=source)
    with atomic_file(out / LOSSES) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["step", "lr", "loss"])
        writer.writeheader()
        writer.writerows(rows)
    with atomic_file(out / "summary.json") as partial:
        partial.write_text(jsonlib.dumps(summary, indent=2) + "\n", "utf-8")


def _export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a folder that transformers loads."""
    from transformers.utils import logging

    from .conversion import dequantize_

    if not sys.stderr.isatty():
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    dequantize_(model).save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
