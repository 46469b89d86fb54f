"""The words for a plugin's author: check and new."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata.verbs import Json

if TYPE_CHECKING:
    from separata.registry import Registry
    from separata.testing.conformance import Report


def add_to(app: typer.Typer) -> None:
    """Add these words to the root."""
    app.command()(check)
    app.command()(new)


def check(
    plugin: Annotated[str, typer.Argument(help="An installed plugin's slug, or the folder of its project.")],
    every: Annotated[bool, typer.Option("--all", help="Show the checks that passed, too.")] = False,
    json: Json = False,
) -> None:
    """Try a plugin on every rule that plugins keep, and say which it breaks.

    Exits with 1 if it breaks one, or if too few could be tried.

    Example: separata check xkv --all
    """
    from separata import verbs
    from separata.testing.conformance import check as run

    with _plugin(plugin) as (slug, registry):
        report = run(slug, registry=registry)
    verbs.show(report.as_json(), json=True) if json else _print_report(report, every)
    if not report.holds:
        raise typer.Exit(1)


def new(
    name: Annotated[str, typer.Argument(help="The slug: lower-case words joined by hyphens.")],
    kind: Annotated[
        list[str] | None,
        typer.Option(help="What it offers: model, trainer, estimator, kernel, scheduler; may be repeated."),
    ] = None,
    into: Annotated[Path, typer.Option("--into", help="Where to make its folder.")] = Path(),
    summary: Annotated[str, typer.Option(help="One sentence of at most 80 characters.")] = "",
) -> None:
    """Make a complete plugin that installs and passes its checks, to be changed into yours.

    Example: separata new my-method --kind kernel
    """
    from . import scaffold

    folder = scaffold.render(name, kind or ["kernel"], into, summary)
    typer.echo(f"{folder} is a complete plugin. Next:")
    typer.echo(f"  python -m pip install --editable {folder}")
    typer.echo(f"  separata check {name}")


@contextmanager
def _plugin(plugin: str) -> Iterator[tuple[str, Registry]]:
    """The slug to check and where it is; a project's folder is installed for as long as that takes."""
    from separata import registry
    from separata.testing import Site

    if not (os.sep in plugin or Path(plugin).is_dir()):
        yield plugin, registry.default()
        return
    slug = _slug_of(Path(plugin))
    with tempfile.TemporaryDirectory() as target:
        _install(Path(plugin), target)
        before = os.environ.get("PYTHONPATH")
        # The kit asks some questions in processes of their own, which find the plugin through the environment.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [target, before]))
        sys.path.insert(0, target)
        try:
            yield slug, registry.Registry(Site(Path(target)).installed())
        finally:
            sys.path.remove(target)
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before


def _slug_of(folder: Path) -> str:
    import tomllib

    from separata.discovery import GROUP
    from separata.errors import UnknownName

    try:
        table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnknownName(
            f"{folder} is no plugin: its pyproject.toml can't be read: {error}",
            "name an installed slug, or a folder made with `separata new`",
        ) from error
    slugs = list(table.get("project", {}).get("entry-points", {}).get(GROUP, {}))
    if len(slugs) != 1:
        raise UnknownName(
            f"{folder} is no plugin: its pyproject.toml has {len(slugs)} entry points in {GROUP}",
            f'add [project.entry-points."{GROUP}"] with one line: slug = "separata_<slug>._plugin"',
        )
    return str(slugs[0])


def _install(folder: Path, target: str) -> None:
    import tomllib
    from importlib.util import find_spec

    from separata.errors import BrokenPlugin

    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    backend = str(table.get("build-system", {}).get("build-backend", "setuptools")).partition(".")[0]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # With the backend at hand no index is needed to build it.
    isolation = ["--no-build-isolation"] if find_spec(backend) else []
    done = subprocess.run(
        [*command, *isolation, "--target", target, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise BrokenPlugin(
            f"{folder} does not install: {lines[-1] if lines else 'pip failed'}",
            f"see python -m pip install --no-deps {folder}",
        )


def _print_report(report: Report, every: bool) -> None:
    from separata import verbs

    rows = [
        {"on": o.case.subject, "check": o.case.check.name, "outcome": o.state, "reason": o.reason or None}
        for o in report.outcomes
        if every or o.state != "passed"
    ]
    if rows:
        verbs.show(rows)
    for line in report.missing:
        typer.echo(line)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(report.counts.items()))
    typer.echo(f"{report.slug}: {counts}")
