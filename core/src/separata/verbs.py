"""What the verbs of all plugins share: options from a config, output for people or machines, progress.

Only a plugin's ``cli`` module imports this, and only ``separata-cli``, which brings typer, imports that.
"""

from __future__ import annotations

import inspect
import json as jsonlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import typer

if TYPE_CHECKING:
    from .config import Resolved as Resolved
    from .config import Setting

__all__ = ["Json", "Resolved", "Seed", "app", "configured", "progress", "show"]

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]


def __getattr__(name: str) -> Any:
    # The root's help imports this module for its option types, and must not pay for configs.
    if name == "Resolved":
        from .config import Resolved

        return Resolved
    raise AttributeError(f"module {__name__} has no attribute {name}")


def app(help: str) -> typer.Typer:
    """A typer app for a plugin's verbs: help without arguments, no completion of its own, errors left alone."""
    made = typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Plain help: rich would take "[default: 8.0]" and "[nats]" for its markup and leave them out.
        rich_markup_mode=None,
    )
    # With a callback even a plugin with one verb shows it as a verb.
    made.callback()(lambda: None)
    return made


def configured(cls: type[Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a verb one option for each setting of a config, and ``--config FILE``.

    The verb receives ``config``, a ``Resolved``. A setting comes from the command line, else from the
    environment (``SEPARATA_XKV_RATIO`` for a config of ``separata_xkv``), else from the file, else its default.

    Args:
        cls: A frozen attrs class whose fields carry ``metadata={"help": …}``.
    """
    from .config import resolve, settings

    env = cls.__module__.partition(".")[0].upper() + "_"
    options = {setting.name.replace(".", "__"): setting for setting in settings(cls)}

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @wraps(function)
        def verb(**arguments: Any) -> T:
            file = arguments.pop("config_file")
            overrides = {setting.name: arguments.pop(name) for name, setting in options.items()}
            return function(**arguments, config=resolve(cls, file=file, env=env, overrides=overrides))

        own = inspect.signature(function, eval_str=True).parameters.values()
        parameters = [parameter for parameter in own if parameter.name != "config"]
        parameters = [*parameters, *starmap(_option, options.items()), _config_file()]
        del verb.__dict__["__wrapped__"]
        verb.__dict__["__signature__"] = inspect.Signature(parameters)
        verb.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return verb

    return decorate


def _option(name: str, setting: Setting) -> inspect.Parameter:
    import attrs

    unsaid = setting.default is None or setting.default is attrs.NOTHING
    text = setting.help + ("" if unsaid else f" [default: {_plain(setting.default)}]")
    kind: Any = _typer_type(setting.kind)
    # A setting of a nested config is an option with a dot in it, as it is in files and messages.
    dotted = setting.name.replace("_", "-") if "." in setting.name else ""
    flag = f"--{dotted}/--no-{dotted}" if kind is bool else f"--{dotted}"
    # None means not given here, so that the environment and the file are asked before the default.
    option = typer.Option(*([flag] if dotted else []), help=text, show_default=False)
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _typer_type(wanted: Any) -> Any:
    """The type that typer reads; several values come as one text joined by commas."""
    if get_origin(wanted) is tuple:
        return str
    if type(None) in get_args(wanted):
        return _typer_type(next(part for part in get_args(wanted) if part is not type(None)))
    return wanted


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _config_file() -> inspect.Parameter:
    annotation = Annotated[
        Path | None,
        typer.Option("--config", help="TOML or JSON with settings; a run's config.json repeats that run."),
    ]
    return inspect.Parameter(
        "config_file", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def show(
    rows: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, json: bool = False, title: str = ""
) -> None:
    """Print rows as a table for people, or as JSON for machines, on standard output.

    Args:
        rows: One mapping a row with the same keys, or a single mapping shown as names and values.
        json: Print JSON instead.
        title: A heading for people.
    """
    if json:
        typer.echo(jsonlib.dumps(_finite(rows), indent=2, default=_as_plain))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    if isinstance(rows, Mapping):
        table.show_header = False
        rows = [{"name": name, "value": value} for name, value in rows.items()]
    for column in rows[0] if rows else ():
        numeric = all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(str(column).replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*[_cell(row.get(column)) for column in rows[0]])
    # A pipe or a file has no width of its own, and a table cut at 80 columns would lose figures.
    width = None if sys.stdout.isatty() else 200
    # Brackets and colons in a cell are the cell's own, not rich's markup.
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _as_plain(value: Any) -> Any:
    return _finite(value.tolist()) if hasattr(value, "tolist") else str(value)


def _finite(value: Any) -> Any:
    """The value with null for NaN and infinities, which JSON has no words for."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def progress(items: Iterable[T], doing: str, *, total: int | None = None) -> Iterable[T]:
    """Go through items with a progress bar on standard error; silent when that is no terminal."""
    if not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, doing, total=total, console=Console(stderr=True), transient=True)
