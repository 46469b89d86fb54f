"""The words that put papers to the proof: prove and bench."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata.verbs import Json, Seed

if TYPE_CHECKING:
    from separata.benchmarks import Result
    from separata.claims import Verdict


def add_to(app: typer.Typer) -> None:
    """Add these words to the root."""
    app.command()(prove)
    app.command()(bench)


def prove(
    slug: Annotated[str, typer.Argument(help="The plugin.")],
    claim: Annotated[list[str] | None, typer.Argument(help="Only these claims.")] = None,
    scale: Annotated[str, typer.Option(help="small: two cores, a minute a claim; full: GPUs.")] = "small",
    seed: Seed = 0,
    details: Annotated[bool, typer.Option("--details", help="Also the rows behind each figure.")] = False,
    json: Json = False,
) -> None:
    """Put a paper's claims to the proof on real input: the paper's figure, ours, and the peer's.

    Exits with 1 if a claim does not hold that its plugin says holds.

    Example: separata prove xkv layers-align
    """
    from separata import verbs
    from separata.claims import prove as put_to_proof
    from separata.errors import UnknownName
    from separata.records import SCALES

    if scale not in SCALES:
        raise UnknownName(f"there is no scale {scale!r}", f"the scales are {' and '.join(SCALES)}")
    verdicts: list[Verdict] = []
    for verdict in put_to_proof(slug, claim or (), scale=scale, seed=seed):
        verdicts.append(verdict)
        if not json:
            _report(verdict)
    if json:
        verbs.show([verdict.as_json() for verdict in verdicts], json=True)
    else:
        _summarise(verdicts, details)
    if any(verdict.failed for verdict in verdicts):
        raise typer.Exit(1)


def bench(
    slug: Annotated[str, typer.Argument(help="The plugin.")],
    case: Annotated[list[str] | None, typer.Argument(help="Only these benchmarks.")] = None,
    rounds: Annotated[int, typer.Option(help="How often each side is timed at each size.", min=1)] = 5,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Time a plugin against its peer, in turns in this process, over growing sizes.

    The ratio says how many times as fast as the peer it is; the growth is the exponent of time against size.

    Example: separata bench xkv factorise
    """
    from separata import verbs
    from separata.benchmarks import bench as run

    rows: list[dict[str, object]] = []
    for result in run(slug, case or (), seed=seed, rounds=rounds):
        rows.extend(result.as_json())
        if not json:
            _timings(result)
    if json:
        verbs.show(rows, json=True)
    elif not rows:
        typer.echo(f"{slug} has no benchmark.")


def _report(verdict: Verdict) -> None:
    """One line as soon as a claim is proved, so that a long run shows where it is."""
    word = {True: "holds", False: "DOES NOT HOLD", None: "not run"}[verdict.holds]
    typer.echo(f"{verdict.slug} {verdict.claim.name}: {word} ({verdict.seconds:.1f} s)", err=True)


def _summarise(verdicts: list[Verdict], details: bool) -> None:
    from separata import verbs

    rows = [_row(verdict) for verdict in verdicts]
    if not rows:
        typer.echo("No claim was proved.")
        return
    verbs.show(rows, title=f"Claims of {verdicts[0].slug}")
    for verdict in verdicts:
        for remark in filter(None, (verdict.note, verdict.claim.refuted)):
            typer.echo(f"{verdict.claim.name}: {remark}")
        if details and verdict.evidence and verdict.evidence.table:
            verbs.show([dict(row) for row in verdict.evidence.table], title=verdict.claim.name)


def _row(verdict: Verdict) -> dict[str, Any]:
    found = verdict.evidence
    return {
        "claim": verdict.claim.says,
        "paper": verdict.claim.paper,
        "ours": f"{found.measured:.4g} {found.unit}" if found else None,
        "bound": str(found.bound) if found else None,
        "peer": "; ".join(f"{name} {value:.3g}" for name, value in found.peers.items()) if found else None,
        "holds": verdict.holds,
    }


def _timings(result: Result) -> None:
    from separata import verbs

    rows = [
        {"size": t.size, "ours_ms": t.ours_s * 1e3, "peer_ms": t.peer_s * 1e3, "ratio": t.ratio}
        for t in result.timings
    ]
    verbs.show(rows, title=f"{result.slug} {result.benchmark.name}: {result.benchmark.says}")
    typer.echo(
        f"peer: {result.benchmark.peer}; time grows as size^{result.ours_growth:.2f} (ours), "
        f"size^{result.peer_growth:.2f} (peer)\n"
    )
    sys.stdout.flush()
