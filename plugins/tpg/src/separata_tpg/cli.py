"""The words of ``separata tpg``: estimate, placebo, plan, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

if TYPE_CHECKING:
    import numpy as np

    from .exact import MDP

app = verbs.app("Estimate the effect of a treatment on a system with memory.")

LogFile = Annotated[Path, typer.Argument(help="Log with one row for each step, .csv or .parquet.")]
Time = Annotated[str | None, typer.Option(help="Column to sort by. [default: rows are in order]")]
Outcome = Annotated[str, typer.Option(help="Column of outcomes.")]
Arm = Annotated[str, typer.Option(help="Column of arms, 0 or 1.")]
Chance = Annotated[str, typer.Option("--p", help="Chance of arm 1, or the column that holds it.")]
Lags = Annotated[str, typer.Option("--k", help="Later outcomes that count: 3, 0,1,3, 0:10 or lepski.")]
Block = Annotated[
    str | None, typer.Option(help="Switchback: steps or a time such as 60min that share one coin.")
]
Baseline = Annotated[
    bool, typer.Option("--baseline/--no-baseline", help="Subtract the mean of earlier outcomes.")
]
Steps = Annotated[str, typer.Option(help="Lengths, joined by commas.")]


@app.command()
def estimate(
    log: LogFile,
    *,
    outcome: Outcome = "outcome",
    arm: Arm = "arm",
    p: Chance = "0.5",
    time: Time = None,
    k: Lags = "lepski",
    block: Block = None,
    baseline: Baseline = False,
    form: Annotated[str, typer.Option(help="ht or hajek.")] = "ht",
    edge: Annotated[str, typer.Option(help="pad cuts windows at the end, drop leaves them out.")] = "pad",
    center: Annotated[str, typer.Option(help="global, or local for a drifting level.")] = "global",
    discount: Annotated[float, typer.Option(help="Weight of an outcome against the one before it.")] = 1.0,
    impute: Annotated[str | None, typer.Option(help="zero-effect fills missing outcomes.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw estimates and errors over k, .png or .pdf.")] = None,
    json: verbs.Json = False,
) -> None:
    """Estimate the effect of always against never treating, over k, with one k chosen.

    Example: separata tpg estimate log.csv --time time --baseline --k 0:10 --plot path.png
    """
    from .estimator import TPGEstimator
    from .logs import read_table

    fitted = TPGEstimator(
        _lags(k),
        p=_chance(p),
        outcome=outcome,
        arm=arm,
        time=time,
        block=block,
        baseline="past" if baseline else None,
        form=form,
        edge=edge,
        center=center,
        discount=discount,
        impute=impute,
    ).fit(read_table(log))
    if plot:
        from .plots import save

        save(fitted, plot)
    low, high = fitted.ci_
    rows = [{**row, "chosen": row["k"] == fitted.k_} for row in fitted.path_.to_dict("records")]
    if json:
        found = {"value": fitted.estimate_.value, "std_error": fitted.se_, "low": low, "high": high}
        verbs.show({"steps": fitted.n_steps_, "k": fitted.k_, **found, "path": rows}, json=True)
        return
    verbs.show(
        rows,
        title=f"{fitted.n_steps_} {'blocks' if block else 'steps'}; k = {fitted.k_}: {fitted.estimate_.value:.4g}, "
        f"95% interval {low:.4g} to {high:.4g}, given that k",
    )


@app.command()
def placebo(
    log: LogFile,
    *,
    outcome: Outcome = "outcome",
    time: Time = None,
    block: Block = None,
    p: Annotated[float, typer.Option("--p", help="Chance of arm 1.")] = 0.5,
    k: Lags = "0,1,3,5",
    n: Annotated[int, typer.Option("--n", min=2, help="Draws of fake arms.")] = 500,
    baseline: Baseline = False,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Draw fake arms on real outcomes, and see how often intervals cover an effect of 0.

    Example: separata tpg placebo log.csv --time time --baseline
    """
    from .logs import make_log, read_table
    from .placebos import placebo as run

    series = make_log(read_table(log), p=p, outcome=outcome, time=time, block=block, placebo=True).outcomes
    rows = run(series, _lags(k), p=p, n=n, seed=seed, baseline="past" if baseline else None)
    verbs.show(rows.to_dict("records"), json=json, title=f"{n} draws on {len(series)} outcomes")


@app.command()
def plan(
    source: Annotated[Path, typer.Argument(help="MDP as .json, or a pilot's log as .csv or .parquet.")],
    *,
    steps: Steps = "1000,5000,20000",
    k: Lags = "0,1,2,3,5",
    p: Annotated[float, typer.Option("--p", help="Chance of arm 1.")] = 0.5,
    power: Annotated[float, typer.Option(help="Chance to detect the effect.")] = 0.8,
    outcome: Outcome = "outcome",
    arm: Arm = "arm",
    time: Time = None,
    block: Block = None,
    baseline: Baseline = False,
    json: verbs.Json = False,
) -> None:
    """Say before launch which effect an experiment of some length can detect at each k.

    Example: separata tpg plan log.csv --time time --baseline --steps 2000,8000
    """
    from .estimator import TPGEstimator, whole_numbers
    from .exact import MDP
    from .logs import read_table
    from .planning import plan as run

    ks = whole_numbers(_lags(k))
    known: MDP | TPGEstimator
    if source.suffix == ".json":
        known = MDP.read(source)
    else:
        chosen = "past" if baseline else None
        known = TPGEstimator(ks, p=p, outcome=outcome, arm=arm, time=time, block=block, baseline=chosen)
        known.fit(read_table(source))
    rows = run(known, _integers(steps, "--steps"), ks, p=p, power=power)
    verbs.show(rows.to_dict("records"), json=json, title=f"Detected in {power:.0%} of experiments")


@app.command()
def simulate(
    system: Annotated[str, typer.Argument(help="two-state or queue.")],
    *,
    out: Annotated[Path, typer.Option(help="Write the log here, .csv or .parquet.")],
    steps: Annotated[int, typer.Option(min=10, help="Steps.")] = 5000,
    block: Annotated[int, typer.Option(min=1, help="Steps that share one coin.")] = 1,
    gamma: Annotated[float, typer.Option(help="Memory of the two states.")] = 0.5,
    p: Annotated[float, typer.Option("--p", help="Chance of arm 1.")] = 0.5,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Simulate an experiment on a system with a known effect, and write its log.

    Example: separata tpg simulate two-state --out log.csv
    """
    import numpy as np

    from . import exact
    from .errors import InvalidSetting
    from .simulators import Queue, run, switchback, two_state

    if system not in ("two-state", "queue"):
        raise InvalidSetting(f"system is {system!r}", "name two-state or queue")
    if not 0 < p < 1 or not 0 <= gamma < 1:
        raise InvalidSetting(f"p is {p}, gamma is {gamma}", "give 0 < p < 1 and 0 <= gamma < 1")
    random = np.random.default_rng(seed)
    arms = switchback(1, steps, block, p, random)
    if system == "queue":
        queue = Queue(steps=steps)
        outcomes, effect = queue.run(arms, random), queue.effect(50, random)
    else:
        process = two_state(steps, gamma, random)
        outcomes, effect = run(process, arms, random), exact.gate(process)
    _write(out, arms[0], outcomes[0])
    verbs.show({"file": str(out), "steps": steps, "effect": effect}, json=json)


def _write(out: Path, arms: np.ndarray[Any, Any], outcomes: np.ndarray[Any, Any]) -> None:
    import pandas as pd

    from separata.errors import PackageMissing
    from separata.files import atomic_file

    times = pd.date_range("2026-01-05", periods=len(arms), freq="min", tz="UTC")
    table = pd.DataFrame({"time": times, "arm": arms, "outcome": outcomes})
    with atomic_file(out) as partial:
        if out.suffix != ".parquet":
            table.to_csv(partial, index=False)
            return
        try:
            table.to_parquet(partial, index=False)
        except ImportError as error:
            raise PackageMissing.extra("pyarrow", "separata-tpg[parquet]") from error


def _chance(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _lags(text: str) -> str | list[int]:
    first, colon, last = text.partition(":")
    if text == "lepski":
        return text
    if colon:
        low, high = _integers(f"{first},{last}", "--k")
        return list(range(low, high + 1))
    return _integers(text, "--k")


def _integers(text: str, option: str) -> list[int]:
    from .errors import InvalidSetting

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSetting(f"{option} is {text!r}", "give whole numbers joined by commas") from None
