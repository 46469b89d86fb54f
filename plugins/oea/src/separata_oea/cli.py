"""The words of ``separata oea``: example, profile, generate, bench."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

from .config import OEAConfig

if TYPE_CHECKING:
    from torch import Tensor

app = verbs.app("Decode a mixture of experts with fewer experts loaded in each step.")

Source = Annotated[
    str, typer.Argument(metavar="MODEL", help="A Hugging Face folder or hub id of a mixture of experts.")
]
Text = Annotated[
    str, typer.Option("--text", help="A .txt, .md, .jsonl or .gz file, or python-topics or shakespeare.")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Rows of a decode step.")]
Sweep = Annotated[
    str, typer.Option("--sweep", help="Which k0, joined by commas; --k0, or all below k, if empty.")
]
Prompt = Annotated[int, typer.Option("--prompt-tokens", min=1, help="Tokens of each row before decoding.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ..., or auto for all of them.")]
Precision = Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or float16.")]


@app.command()
def example(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the model is written.")],
    *,
    text: Text = "python-topics",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps.")] = 350,
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Train a small mixture of experts on real text, to try the other verbs on (a minute or two).

    Example: separata oea example example-moe --steps 350
    """
    from separata.files import atomic_folder

    from . import example_model

    model, losses = example_model.trained(seed, steps, text)
    with atomic_folder(out) as folder:
        example_model.save(model, folder)
    verbs.show({"folder": str(out), "steps": steps, "last loss": losses[-1]}, json=json)


@app.command()
@verbs.configured(OEAConfig)
def profile(
    model: Source,
    *,
    config: verbs.Resolved[OEAConfig],
    text: Text = "python-topics",
    batch: Batch = 16,
    sweep: Sweep = "",
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of text, a multiple of the batch.")] = 32,
    prompt_tokens: Prompt = 16,
    tokens: Annotated[int, typer.Option("--tokens", min=2, help="Tokens decoded of each row.")] = 64,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write profile.csv, profile.json and pareto.png here.")
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw the figure (needs matplotlib).")] = True,
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
) -> None:
    """Measure, for each k0, how many experts are loaded and what that costs in cross-entropy and divergence.

    Example: separata oea profile example-moe --text python-topics --batch 16 --out study
    """
    from .evaluation import profile as measure

    language_model, ids = _loaded(model, text, device, dtype, rows, prompt_tokens + tokens)
    found = measure(
        language_model,
        ids,
        batch=batch,
        k0s=_sweep(sweep, config.value.k0),
        prompt=prompt_tokens,
        config=config.value,
    )
    if out is not None:
        _write(found, out, batch, plots)
    if json:
        verbs.show(found, json=True)
        return
    whole = [{k: v for k, v in row.items() if k != "layer"} for row in found if row["layer"] == "all"]
    verbs.show(whole, title=f"{batch} rows a step, mean of all layers")


@app.command()
@verbs.configured(OEAConfig)
def generate(
    model: Source,
    *,
    config: verbs.Resolved[OEAConfig],
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", help="A prompt; repeat for a batch.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="Prompts: lines of a .txt, objects of a .jsonl.")
    ] = None,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, help="Most tokens a prompt.")
    ] = 64,
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
) -> None:
    """Generate greedily from a batch of prompts, and say how many experts that loaded.

    Example: separata oea generate example-moe --prompt "The if statement" --prompt "A list is" --k0 2
    """
    from separata_kit_llm import load

    from .generation import complete, read_prompts

    written = [*(prompt or []), *(read_prompts(prompts) if prompts else [])]
    language_model, tokenizer = load(model, device=device, dtype=dtype)
    texts, activation = complete(language_model, tokenizer, written, config.value, max_new_tokens)
    pairs = [{"prompt": one, "text": text} for one, text in zip(written, texts, strict=True)]
    if json:
        verbs.show({"completions": pairs, "layers": activation.rows(), **activation.summary()}, json=True)
        return
    for pair in pairs:
        typer.echo(f"{pair['prompt']}{pair['text']}\n")
    verbs.show(activation.rows(), title="Experts loaded a decode step")


@app.command()
@verbs.configured(OEAConfig)
def bench(
    model: Source,
    *,
    config: verbs.Resolved[OEAConfig],
    text: Text = "python-topics",
    batch: Batch = 16,
    sweep: Sweep = "",
    prompt_tokens: Prompt = 64,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Decode steps of each turn.")] = 8,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Turns of each k0.")] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write steps.csv, fit.json and time.png here.")
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw the figure (needs matplotlib).")] = True,
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
) -> None:
    """Time decode steps for each k0 in turns, and fit the line of time against distinct experts.

    Example: separata oea bench example-moe --batch 16 --sweep 1,2 --out timing
    """
    import attrs

    from .evaluation import experts_per_token, piggybacked
    from .latency import fit_latency
    from .timing import step_times, summary

    language_model, ids = _loaded(model, text, device, dtype, batch, prompt_tokens + steps)
    chosen = _sweep(sweep, config.value.k0) or range(1, experts_per_token(language_model))
    routings = {f"k0 = {k0}": piggybacked(k0, config.value) for k0 in chosen}
    times = step_times(language_model, ids, routings, steps=steps, rounds=rounds)
    fit = fit_latency([one.experts_hit for one in times], [one.seconds for one in times])
    low, high = fit.interval()
    line = {
        "seconds_per_expert": fit.seconds_per_expert.value,
        "low": low,
        "high": high,
        "fixed_seconds": fit.rest.value,
        "r2": fit.r2,
        "steps": fit.samples,
    }
    if out is not None:
        from separata.files import atomic_folder

        with atomic_folder(out) as folder:
            _table([attrs.asdict(one) for one in times], folder / "steps.csv")
            (folder / "fit.json").write_text(jsonlib.dumps(line, indent=2) + "\n", "utf-8")
            if plots:
                from .plots import time_against_experts

                time_against_experts(times, fit, folder / "time.png")
    if json:
        verbs.show({"routings": summary(times), "line": line}, json=True)
        return
    verbs.show(summary(times), title=f"{batch} rows a step, experts of all layers, medians")
    verbs.show(line, title="Seconds a step against experts")


def _loaded(source: str, text: str, device: str, dtype: str, rows: int, length: int) -> tuple[Any, Tensor]:
    from separata_kit_llm import load, read_text

    from .evaluation import rows_of

    model, tokenizer = load(source, device=device, dtype=dtype)
    encoded: Any = tokenizer(read_text(text), return_tensors="pt", verbose=False)
    return model, rows_of(encoded.input_ids[0], rows, length)


def _sweep(joined: str, k0: int | None) -> list[int]:
    """The k0 to try: those of --sweep, else that of --k0, else none, which means all."""
    from .errors import InvalidSetting

    try:
        return [int(word) for word in joined.split(",") if word.strip()] or ([] if k0 is None else [k0])
    except ValueError as error:
        raise InvalidSetting(
            f"--sweep is {joined!r}", "give numbers joined by commas, such as 1,2,4"
        ) from error


def _write(rows: list[dict[str, Any]], out: Path, batch: int, plots: bool) -> None:
    from separata.files import atomic_folder

    with atomic_folder(out) as folder:
        _table(rows, folder / "profile.csv")
        (folder / "profile.json").write_text(jsonlib.dumps(rows, indent=2) + "\n", "utf-8")
        if plots:
            from .plots import pareto

            pareto(rows, folder / "pareto.png", batch=batch)


def _table(rows: list[dict[str, Any]], path: Path) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
