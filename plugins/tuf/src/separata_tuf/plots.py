"""Figures: how periods grow, and what each schedule's error costs as budgets grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from separata import figures

from .bounds import Plan


def periods(plan: Plan, file: Path) -> None:
    """Draw the lengths of growing periods beside the best equal ones.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(7, 4, dist="separata-tuf")
    axes = figure.subplots()
    for lengths, name in ((plan.lengths, "growing"), (plan.equal_lengths, "best equal")):
        axes.step(np.arange(1, len(lengths) + 1), lengths, where="mid", label=name)
    axes.set(title="Updates between two refreshes", xlabel="period", ylabel="updates", yscale="log")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figures.save(figure, file)


def errors(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw the error of each schedule over budgets, and the error times the root of the budget.

    An error that falls as one over the root of the budget is level on the right; the logarithm that equal periods pay
    rises there.

    Args:
        rows: ``comparison.Score`` as mappings.
        file: Where to write.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(10, 4, dist="separata-tuf")
    left, right = figure.subplots(1, 2)
    for name in dict.fromkeys(row["schedule"] for row in rows):
        own = [row for row in rows if row["schedule"] == name]
        budgets = np.array([row["budget"] for row in own])
        error, spread = (np.array([row[key] for row in own]) for key in ("error", "std_error"))
        left.errorbar(budgets, error, yerr=spread, marker="o", capsize=3, label=name)
        right.errorbar(
            budgets, error * np.sqrt(budgets), yerr=spread * np.sqrt(budgets), marker="o", capsize=3
        )
    left.set(title="Error", ylabel="sup norm of Q - Q*", yscale="log")
    right.set(title="What a unit of precision costs", ylabel="error x root of budget")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.set(xlabel="updates", xscale="log")
        axes.grid(alpha=0.3)
    left.legend(frameon=False)
    figures.save(figure, file)
