"""Two figures: quality against experts loaded, and step time against experts loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from separata import figures

from .latency import LatencyFit
from .timing import StepTime

NAMES = {"plain": "plain top-k", "oea": "OEA", "pruned": "plain top-k0"}


def pareto(rows: Sequence[Mapping[str, Any]], path: Path, *, batch: int) -> None:
    """Write a PNG of cross-entropy against experts hit, over k0.

    Args:
        rows: What ``evaluation.profile`` returns.
        path: The file.
        batch: Rows of a step, for the title.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure, axes = _axes()
    whole = [row for row in rows if row["layer"] == "all"]
    for color, routing in (("C0", "oea"), ("C1", "pruned")):
        own = sorted((row for row in whole if row["routing"] == routing), key=lambda row: row["k0"])
        hits, losses = [row["experts_hit"] for row in own], [row["cross_entropy"] for row in own]
        axes.plot(hits, losses, "o-", color=color, label=NAMES[routing])
        above = routing == "pruned"
        for row in own:
            axes.annotate(
                f"{row['k0']}",
                (row["experts_hit"], row["cross_entropy"]),
                xytext=(5, 5) if above else (-5, -5),
                textcoords="offset points",
                ha="left" if above else "right",
                va="bottom" if above else "top",
            )
    for row in whole:
        if row["routing"] == "plain":
            axes.plot(
                row["experts_hit"], row["cross_entropy"], "ks", label=f"{NAMES['plain']}, k = {row['k0']}"
            )
    axes.set_xlabel("distinct experts a layer and step")
    axes.set_ylabel("cross-entropy, nats a token")
    axes.set_title(f"{batch} rows a step; numbers are k0")
    axes.legend(frameon=False)
    axes.margins(0.1)
    figures.save(figure, path)


def time_against_experts(times: Sequence[StepTime], fit: LatencyFit, path: Path) -> None:
    """Write a PNG of step time against distinct experts, with the fitted line.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure, axes = _axes()
    for name in dict.fromkeys(one.routing for one in times):
        own = [one for one in times if one.routing == name]
        hits, milliseconds = [one.experts_hit for one in own], [1e3 * one.seconds for one in own]
        axes.plot(hits, milliseconds, ".", alpha=0.6, label=name)
    ends = [min(one.experts_hit for one in times), max(one.experts_hit for one in times)]
    slope, rest = fit.seconds_per_expert.value, fit.rest.value
    axes.plot(
        ends,
        [1e3 * (rest + slope * end) for end in ends],
        "k-",
        label=f"{1e3 * slope:.3g} ms an expert, R² {fit.r2:.3f}",
    )
    axes.set_xlabel("distinct experts a step, all layers")
    axes.set_ylabel("milliseconds a step")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    figures.save(figure, path)


def _axes() -> tuple[Any, Any]:
    figure = figures.figure(6.5, 4.2, dist="separata-oea")
    axes = figure.add_subplot()
    axes.grid(alpha=0.3)
    return figure, axes
