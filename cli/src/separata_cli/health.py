"""The word that looks for what is wrong: doctor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata.verbs import Json

if TYPE_CHECKING:
    from separata.registry import Registry


def add_to(app: typer.Typer) -> None:
    """Add these words to the root."""
    app.command()(doctor)


def doctor(
    slug: Annotated[
        str | None, typer.Argument(help="Only this plugin, and everything that it names.")
    ] = None,
    json: Json = False,
) -> None:
    """Load every plugin, or one with all that it names, and say what is wrong and what to do.

    Exits with 3 if a plugin can't be used.

    Example: separata doctor xkv
    """
    from separata import registry
    from separata.verbs import show

    known = registry.default()
    rows = list(_diagnose_one(known, slug) if slug else _diagnose_all(known))
    show(rows, json=json) if rows or json else typer.echo("No plugin is installed; the core is well.")
    if any(not row["well"] for row in rows):
        raise typer.Exit(3)


def _diagnose_all(known: Registry) -> Iterator[dict[str, Any]]:
    from separata.errors import SeparataError

    if known.catalogue_problem is not None:
        yield _row("the catalogue", known.catalogue_problem)
    for info in known.plugins():
        if info.state in ("catalogued", "blocked"):
            continue
        problem: SeparataError | None = None
        try:
            known.plugin(info.slug)
        except SeparataError as error:
            problem = error
        yield _row(info.slug, problem)


def _diagnose_one(known: Registry, slug: str) -> Iterator[dict[str, Any]]:
    from separata.errors import PluginError
    from separata.registry import load_object

    try:
        plugin = known.plugin(slug)
    except PluginError as error:
        yield _row(slug, error)
        return
    yield _row(slug, None)
    paths = [
        path for offer in plugin.offers for path in (offer.object, offer.config, offer.reference) if path
    ]
    paths += [command.object for command in plugin.commands] + [claim.proof for claim in plugin.claims]
    paths += [benchmark.run for benchmark in plugin.benchmarks]
    for path in dict.fromkeys(paths):
        try:
            load_object(path, slug)
        except PluginError as error:
            yield _row(path, error)
        else:
            yield _row(path, None)


def _row(what: str, problem: Any) -> dict[str, Any]:
    return {
        "what": what,
        "well": problem is None,
        "problem": problem.problem if problem else None,
        "remedy": problem.remedy if problem else None,
    }
