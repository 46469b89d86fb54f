"""Throughput against the threshold: simulated, predicted, and mixed batching beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from separata import figures


def throughput_against_k(
    predicted: Mapping[int, float], simulated: Mapping[int, float], mixed: float, best: int, path: Path
) -> None:
    """Write a PNG.

    Args:
        predicted: k to requests a second by the closed form.
        simulated: k to requests a second in the simulator.
        mixed: Requests a second of mixed batching in the simulator.
        best: The k that the closed form advises.
        path: The file.

    Raises:
        PackageMissing: If matplotlib is not installed.
    """
    figure = figures.figure(7, 4.2, dist="separata-ebplus")
    axes = figure.add_subplot()
    axes.plot(list(predicted), list(predicted.values()), color="C0", label="exclusive, closed form")
    axes.plot(list(simulated), list(simulated.values()), "o", color="C1", label="exclusive, simulated")
    axes.axhline(mixed, color="C2", linestyle="--", label="mixed, simulated")
    axes.axvline(best, color="grey", linestyle=":", label=f"advised k = {best}")
    axes.set_xscale("log", base=2)
    ticks = _powers(max(predicted))
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlabel("free slots that start a prefill phase, k")
    axes.set_ylabel("requests a second")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figures.save(figure, path)


def _powers(most: int) -> Sequence[int]:
    return [2**power for power in range(most.bit_length())]
