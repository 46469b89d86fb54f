"""The hooks that a plugin's ``_plugin`` module may implement; each yields or returns records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from .events import Event
from .records import Benchmark, Claim, Command, Input, Offer, Paper

if TYPE_CHECKING:
    from accelerate import Accelerator

    from .placement import Placement

PROJECT = "separata"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def separata_paper() -> Paper:  # type: ignore[empty-body]
    """Return the paper that the plugin implements.

    >>> @hookimpl
    ... def separata_paper():
    ...     return Paper("Adaptive Entropy Scheduling", venue="ICML 2026")
    """


@hookspec
def separata_offers() -> Iterable[Offer]:  # type: ignore[empty-body]
    """Yield what programs can look up.

    >>> @hookimpl
    ... def separata_offers():
    ...     yield Offer("kernel", "twed", "separata_idealpoint.twed:TWED", summary="Time warp edit distance.")
    """


@hookspec
def separata_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Yield the typer app behind the plugin's word.

    >>> @hookimpl
    ... def separata_commands():
    ...     yield Command("separata_idealpoint.cli:app", summary="Rank items from pairwise comparisons.")
    """


@hookspec
def separata_claims() -> Iterable[Claim]:  # type: ignore[empty-body]
    """Yield the paper's claims, each with its proof.

    >>> @hookimpl
    ... def separata_claims():
    ...     yield Claim(
    ...         "recovers-order",
    ...         says="Kendall's tau is at least 0.9.",
    ...         paper="0.93 (Table 2)",
    ...         proof="separata_idealpoint.claims:recovers_order",
    ...     )
    """


@hookspec
def separata_benchmarks() -> Iterable[Benchmark]:  # type: ignore[empty-body]
    """Yield the speed comparisons with a peer.

    >>> @hookimpl
    ... def separata_benchmarks():
    ...     yield Benchmark(
    ...         "pairs",
    ...         says="A batch of pairs over growing lengths.",
    ...         peer="aeon",
    ...         run="separata_idealpoint.benchmarks:pairs",
    ...     )
    """


@hookspec
def separata_inputs() -> Iterable[Input]:  # type: ignore[empty-body]
    """Yield the real inputs that the plugin's proofs and examples use.

    >>> @hookimpl
    ... def separata_inputs():
    ...     yield Input("prices", file="~/prices.csv", licence="CC0-1.0")
    """


@hookspec(firstresult=True)
def separata_placement(placement: Placement) -> Accelerator | None:
    """Return the accelerator for a placement, or None to leave it to the next.

    >>> @hookimpl
    ... def separata_placement(placement):
    ...     return None
    """


@hookspec
def separata_event(event: Event) -> None:
    """Hear what a run does: progress displays, trackers and logs implement this one hook.

    >>> @hookimpl
    ... def separata_event(event):
    ...     print(event)
    """
