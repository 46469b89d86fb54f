"""The words that say what there is: list, find, info, inputs, version."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from separata.verbs import Json


def add_to(app: typer.Typer) -> None:
    """Add these words to the root."""
    app.command("list")(list_plugins)
    app.command()(find)
    app.command()(info)
    app.command()(inputs)
    app.command()(version)


def list_plugins(
    every: Annotated[bool, typer.Option("--all", help="Also what is catalogued and not installed.")] = False,
    json: Json = False,
) -> None:
    """List the plugins with their state.

    Example: separata list --all
    """
    from separata import plugins
    from separata.verbs import show

    rows = [row for row in plugins() if every or row.state != "catalogued"]
    found = [
        {
            "slug": row.slug,
            "version": row.version or None,
            "state": row.state,
            "summary": row.reason or row.summary,
        }
        for row in rows
    ]
    show(found, json=json) if found or json else typer.echo(
        "No plugin is installed; see `separata list --all`."
    )


def find(
    text: Annotated[list[str] | None, typer.Argument(help="Words that must all occur.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only model, trainer, estimator, kernel or scheduler.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only what carries this tag; may be repeated.")
    ] = None,
    json: Json = False,
) -> None:
    """Search plugins and what they offer, installed or not.

    Example: separata find kv cache --kind kernel
    """
    from separata import search
    from separata.errors import UnknownName
    from separata.records import KINDS
    from separata.verbs import show

    if kind is not None and kind not in KINDS:
        raise UnknownName(f"there is no kind {kind!r}", f"the kinds are {', '.join(KINDS)}")
    rows: list[dict[str, Any]] = [
        {
            "name": row.name,
            "kind": row.kind,
            "installed": row.installed,
            "summary": row.summary,
            "tags": sorted(row.tags) if json else ", ".join(sorted(row.tags)),
        }
        for row in search.find(" ".join(text or ()), kind=kind, tags=tag or ())
    ]
    show(rows, json=json) if rows or json else typer.echo(
        "Nothing fits; `separata list --all` shows everything."
    )


def info(slug: Annotated[str, typer.Argument(help="The plugin.")], json: Json = False) -> None:
    """Show one plugin: its paper, what it offers, its claims and its inputs.

    Example: separata info xkv
    """
    from separata.verbs import show

    about, tables = _about(slug)
    if json:
        show({**about, **tables}, json=True)
        return
    show(about)
    for title, rows in tables.items():
        if rows:
            show(rows, title=title)


def inputs(
    name: Annotated[str | None, typer.Argument(help="Fetch this one and print its path.")] = None,
    json: Json = False,
) -> None:
    """List the real inputs with their licences, or fetch one and print its path.

    Example: separata inputs smollm2
    """
    from separata import inputs as named
    from separata import registry
    from separata.verbs import show

    if name is not None:
        record = named.record(name)
        typer.echo(f"{record.name}: licence {record.licence}", err=True)
        typer.echo(named.locate(record))
        return
    known = registry.default()
    loaded = [plugin for slug in known.slugs() if (plugin := known.loadable(slug))]
    rows = [
        {
            "input": f"{plugin.slug}/{record.name}",
            "source": f"{record.source} {record.origin}",
            "licence": record.licence,
            "about": record.about,
        }
        for plugin in loaded
        for record in plugin.inputs
    ]
    show(rows, json=json) if rows or json else typer.echo("No installed plugin names an input.")


def version(json: Json = False) -> None:
    """Show the versions of separata, its plugins and what they run on.

    Example: separata version
    """
    from separata import plugins
    from separata.artifacts import versions
    from separata.verbs import show

    dists = [row.dist for row in plugins() if row.state != "catalogued"]
    show(versions("separata", "separata-cli", *dists, "torch", "accelerate"), json=json)


def _about(slug: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    from separata import registry
    from separata.errors import PluginError

    known = registry.default()
    plugin = problem = None
    try:
        plugin = known.plugin(slug)
    except PluginError as error:
        problem = error
    # Only now, since trying it decides its state.
    row = next(row for row in known.plugins() if row.slug == slug)
    about = {
        "slug": slug,
        "dist": row.dist,
        "version": row.version,
        "state": row.state,
        "summary": row.summary,
    }
    if plugin is None:
        assert problem is not None
        return {**about, "reason": problem.problem, "remedy": problem.remedy}, {}
    if plugin.paper:
        about |= {"paper": plugin.paper.title, "venue": plugin.paper.venue, "arxiv": plugin.paper.arxiv}
    offers = [{"name": f"{slug}/{o.name}", "kind": o.kind, "summary": o.summary} for o in plugin.offers]
    claims = [{"name": claim.name, "says": claim.says, "paper": claim.paper} for claim in plugin.claims]
    benchmarks = [{"name": case.name, "says": case.says, "peer": case.peer} for case in plugin.benchmarks]
    named = [
        {"name": i.name, "source": f"{i.source} {i.origin}", "licence": i.licence} for i in plugin.inputs
    ]
    tables = {"offers": offers, "claims": claims, "benchmarks": benchmarks, "inputs": named}
    return about, tables
