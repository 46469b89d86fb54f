"""Proofs of the claims: growing periods against equal ones, both at their best number of periods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import attrs
import gymnasium

from separata.claims import Evidence, Race, Trial, at_least, at_most, close_to, growth, race

from .agents import judge, make_schedule, train
from .benchmarks import GAMMA, draw_and_learn, draw_and_loop, random_process
from .comparison import compare
from .processes import MDP

COUNTS = (5, 10, 20, 30, 40, 60, 80, 120, 180)
BUDGETS = (30_000, 300_000, 3_000_000)
RUNS = 12
RATES = (0.0, 1 / 3, 0.5, 1.0, 2.0)


def beats_equal_periods(trial: Trial) -> Evidence:
    """The largest ratio of errors, growing over equal periods, at three budgets."""
    rows = _random_process(trial)
    ratios = {
        budget: _error(rows, "geometric", budget) / _error(rows, "constant", budget) for budget in BUDGETS
    }
    return Evidence(
        max(ratios.values()), at_most(0.65), "of their error", peers={"equal periods": 1.0}, table=rows
    )


def falls_as_root(trial: Trial) -> Evidence:
    """The exponent of the error of growing periods in the budget."""
    rows = _random_process(trial)
    slopes = {
        name: growth(BUDGETS, [_error(rows, name, budget) for budget in BUDGETS])
        for name in ("geometric", "constant")
    }
    return Evidence(
        slopes["geometric"],
        close_to(-0.5, 0.1),
        "exponent",
        peers={"equal periods": slopes["constant"]},
        table=rows,
    )


def exponent_is_best(trial: Trial) -> Evidence:
    """The error at the exponent of averages over the smallest of all exponents tried."""
    names = [f"rate={rate:.4g}" for rate in RATES]
    scores = compare(
        random_process(trial.seed),
        GAMMA,
        [100_000],
        names,
        counts=COUNTS,
        seeds=_seeds(trial),
        sampling="uniform",
    )
    rows = [
        {"exponent": 1 / (1 + rate), **attrs.asdict(score)} for rate, score in zip(RATES, scores, strict=True)
    ]
    best = min(float(row["error"]) for row in rows)
    ours = next(float(row["error"]) for row, rate in zip(rows, RATES, strict=True) if rate == 0.5)
    return Evidence(ours / best, at_most(1.2), "of the best", table=rows)


def on_grid_worlds(trial: Trial) -> Evidence:
    """The largest ratio of errors on gymnasium's FrozenLake, and CliffWalking with rewards noisy by 1.

    CliffWalking as it is has no noise at all: both are left with nothing.
    """
    rows: list[dict[str, Any]] = []
    ratios = []
    for name in ("FrozenLake-v1", "CliffWalking-v1"):
        mdp = MDP.from_env(gymnasium.make(name))
        if name == "CliffWalking-v1":
            mdp = attrs.evolve(mdp, noise=1.0)
        own = [
            attrs.asdict(score)
            for score in compare(mdp, 0.95, [100_000, 300_000], counts=COUNTS, seeds=_seeds(trial, 5))
        ]
        rows += [{"process": name, **row} for row in own]
        ratios += [
            _error(own, "geometric", budget) / _error(own, "constant", budget)
            for budget in (100_000, 300_000)
        ]
    return Evidence(max(ratios), at_most(1.05), "of their error", peers={"equal periods": 1.0}, table=rows)


def fast(trial: Trial) -> Evidence:
    """How many times faster a hundred thousand updates are than a loop."""
    mdp = random_process(trial.seed)
    timing = race(
        Race(
            100_000,
            lambda: draw_and_learn(mdp, 100_000, trial.seed),
            lambda: draw_and_loop(mdp, 100_000, trial.seed),
        )
    )
    return Evidence(timing.ratio, at_least(50), "times as fast")


def deep(trial: Trial) -> Evidence:
    """Mean return of growing periods over that of the median constant interval, CartPole, ten seeds."""
    rows: list[dict[str, Any]] = []
    for schedule, first in (("geometric", 100), *(("constant", first) for first in (25, 100, 400, 1600))):
        returns = [
            judge(
                train("CartPole-v1", make_schedule(schedule, first, 0.99), 50_000, seed=seed)[0],
                "CartPole-v1",
                20,
            )[0]
            for seed in _seeds(trial, 10)
        ]
        rows.append({"schedule": schedule, "first": first, "mean return": fmean(returns)})
    ours, *constants = (float(row["mean return"]) for row in rows)
    return Evidence(
        ours / median(constants),
        at_least(1),
        "of its return",
        peers={"best constant": max(constants) / median(constants)},
        table=rows,
    )


def _random_process(trial: Trial) -> list[dict[str, Any]]:
    """Both schedules on the random process at three budgets, once for each source and seed."""

    def build(folder: Path) -> None:
        scores = compare(random_process(trial.seed), GAMMA, BUDGETS, counts=COUNTS, seeds=_seeds(trial))
        (folder / "scores.json").write_text(json.dumps([attrs.asdict(score) for score in scores]))

    rows: list[dict[str, Any]] = json.loads((trial.keep("random", build) / "scores.json").read_text())
    return rows


def _seeds(trial: Trial, runs: int = RUNS) -> Sequence[int]:
    return range(trial.seed, trial.seed + runs)


def _error(rows: Sequence[dict[str, Any]], schedule: str, budget: int) -> float:
    return next(float(row["error"]) for row in rows if (row["schedule"], row["budget"]) == (schedule, budget))
