"""The words of ``separata ebplus``: profile, advise, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

from .config import EBPlusConfig

if TYPE_CHECKING:
    from .traces import Trace

app = verbs.app("Choose the batching policy of an LLM server from its step times and its requests.")

Timing = Annotated[Path, typer.Option("--timing", help="Step times, as written by profile.")]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace", help="JSONL or CSV with arrival, prompt_tokens, output_tokens; Azure's or vidur's, too."
    ),
]
Lengths = Annotated[
    str,
    typer.Option(help="Without a trace: output lengths geometric, gamma or lognormal around prior-output."),
]
Requests = Annotated[int, typer.Option(min=16, help="Without a trace: how many requests, all there at once.")]


@app.command()
def profile(
    model: Annotated[str, typer.Argument(help="A Hugging Face folder, a .gguf file, a hub id, or smollm2.")],
    *,
    out: Annotated[Path | None, typer.Option(help="Write the constants to this JSON file.")] = None,
    steps: Annotated[Path | None, typer.Option(help="Write every measured step to this CSV file.")] = None,
    device: Annotated[str, typer.Option(help="Device of torch.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="Data type of the weights.")] = "float32",
    rounds: Annotated[int, typer.Option(min=1, help="How often each step is timed.")] = 2,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch on a CPU.")] = 1,
    json: verbs.Json = False,
) -> None:
    """Measure the fixed and the per-token time of prefill, decode and mixed steps of a model.

    Example: separata ebplus profile smollm2 --out timing.json
    """
    from separata.errors import PackageMissing

    from .timing import TimingModel

    try:
        from separata_kit_llm import load

        from .profiling import profile as measure
    except ImportError as error:
        raise PackageMissing.extra(str(error.name), "separata-ebplus[llm]") from error
    import torch

    torch.set_num_threads(threads)
    loaded, _ = load(model, device=device, dtype=dtype)
    rows = list(measure(loaded, rounds=rounds))
    if steps:
        _write_csv(rows, steps)
    timing = TimingModel().fit(rows)
    if out:
        timing.save(out)
    table: list[dict[str, Any]] = [
        {"phase": "prefill", "alpha ms": 1e3 * timing.alpha_prefill_, "beta ms": 1e3 * timing.beta_prefill_},
        {"phase": "decode", "alpha ms": 1e3 * timing.alpha_decode_, "beta ms": 1e3 * timing.beta_decode_},
    ]
    for share, slope in zip(timing.shares_.tolist(), timing.slopes_.tolist(), strict=True):
        phase = f"mixed, {share:.0%} decode"
        table.append({"phase": phase, "alpha ms": 1e3 * timing.alpha_mixed_, "beta ms": 1e3 * slope})
    for row in table:
        row["R2"] = timing.r2_[row["phase"].partition(",")[0]]
    verbs.show(table, json=json, title=f"Step times of {model}: alpha + beta * tokens")


@app.command()
@verbs.configured(EBPlusConfig)
def advise(
    *,
    timing: Timing,
    trace: TraceFile = None,
    lengths: Lengths = "geometric",
    requests: Requests = 2000,
    hazard_slope: Annotated[
        float, typer.Option(help="Growth of the completion rate in one iteration of a decode phase.")
    ] = 0.0,
    config: verbs.Resolved[EBPlusConfig],
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Say which mode wins, from which threshold, at what concurrency, and how that depends on the load.

    Example: separata ebplus advise --timing timing.json --trace requests.jsonl --slots 64 --capacity 60000
    """
    import attrs

    from .advice import advise as decide
    from .timing import TimingModel

    requested = _trace(trace, lengths, requests, config.value, seed)
    found = decide(TimingModel.load(timing), requested, config.value, hazard_slope=hazard_slope)
    if json:
        verbs.show(attrs.asdict(found), json=True)
        return
    head = attrs.asdict(found, filter=lambda field, _: field.name != "margins")
    verbs.show(head, title="At saturation")
    verbs.show(found.margins, title="By requests that really run")


@app.command()
@verbs.configured(EBPlusConfig)
def simulate(
    *,
    timing: Timing,
    schedulers: Annotated[
        str, typer.Option(help="Joined by commas: mb, eb1 (or another k), eb (k learned), ebplus.")
    ] = "mb,eb1,eb,ebplus",
    trace: TraceFile = None,
    lengths: Lengths = "geometric",
    requests: Requests = 2000,
    slo_ttft: Annotated[float, typer.Option(help="Seconds to the first token that count as good.")] = 1e9,
    slo_tpot: Annotated[float, typer.Option(help="Seconds per further token that count as good.")] = 1e9,
    out: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write throughput against k to this PNG.")] = None,
    config: verbs.Resolved[EBPlusConfig],
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Serve a trace in simulated time with several schedulers and compare throughput and latency.

    Example: separata ebplus simulate --timing timing.json --trace requests.csv --schedulers mb,eb1,ebplus
    """
    from .simulator import Simulator
    from .sweep import scheduler
    from .timing import TimingModel

    times, requested = TimingModel.load(timing), _trace(trace, lengths, requests, config.value, seed)
    rows = []
    for name in verbs.progress(schedulers.split(","), "simulating"):
        result = Simulator(times, requested, scheduler(name, times, config.value)).run()
        rows.append({"scheduler": name, **result.metrics(slo_ttft=slo_ttft, slo_tpot=slo_tpot)})
    if out:
        _write_csv(rows, out)
    if plot:
        _plot(times, requested, config.value, plot)
    verbs.show(rows, json=json, title=f"{len(requested)} requests, {config.value.slots} slots")


def _trace(path: Path | None, lengths: str, count: int, config: EBPlusConfig, seed: int) -> Trace:
    import numpy as np

    from .traces import Trace, draw_lengths, read_trace

    if path:
        return read_trace(path)
    generator = np.random.default_rng(seed)
    prompts = draw_lengths("geometric", config.prior_prompt, count, generator)
    return Trace.saturated(prompts, draw_lengths(lengths, config.prior_output, count, generator))


def _plot(timing: Any, trace: Trace, config: EBPlusConfig, path: Path) -> None:
    from .closed_forms import exclusive_seconds
    from .plots import throughput_against_k
    from .sweep import sweep

    simulated, mixed, best = sweep(timing, trace, config)
    lines = (timing.alpha_prefill_, timing.beta_prefill_, timing.alpha_decode_, timing.beta_decode_)
    means = float(trace.prompt_tokens.mean()), float(trace.output_tokens.mean())
    predicted = {
        k: 1 / float(exclusive_seconds(k / config.slots, config.slots, *means, *lines))
        for k in simulated
        if k < config.slots
    }
    throughput_against_k(predicted, simulated, mixed, best, path)


def _write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    import csv

    from separata.files import atomic_file

    with atomic_file(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
