"""The root command: its own words, and one lazy word for each plugin, named without importing it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from separata import discovery
from separata.errors import BrokenPlugin, SeparataError, UnknownName

from . import authoring, evidence, health, listing


class PluginWord(TyperGroup):
    """A plugin's word: one line of help from its metadata, the plugin's own app as soon as it is used."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Load the plugin's app and hand over to it."""
        try:
            app = self._app()
        except SeparataError:
            if not extra.get("resilient_parsing"):
                raise
            # Completion must not write over the line that is being typed: there is just nothing to offer.
            return super().make_context(info_name, args, parent=parent, **extra)
        return app.make_context(info_name, args, parent=parent, **extra)

    def _app(self) -> TyperGroup:
        from separata import registry

        slug = str(self.name)
        plugin = registry.default().plugin(slug)
        if not plugin.commands:
            raise UnknownName(
                f"plugin {slug!r} has no verbs", f"see `separata info {slug}` for what it offers"
            )
        app = registry.load_object(plugin.commands[0].object, slug)
        if not isinstance(app, typer.Typer):
            raise BrokenPlugin(
                f"plugin {slug!r} names {plugin.commands[0].object}, a {type(app).__name__}",
                "tell its author: a command is a typer.Typer",
            )
        group = typer.main.get_group(app)
        group.name = slug
        return group


class Root(TyperGroup):
    """The root group: lists slugs from entry points, loads a plugin only when its word is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The root's own words, then the installed slugs."""
        return [*super().list_commands(ctx), *discovery.words()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A root word, or the stub of a plugin."""
        own = super().get_command(ctx, cmd_name)
        found = discovery.words().get(cmd_name)
        if own is not None or found is None:
            return own
        return PluginWord(name=cmd_name, help=found[0].summary)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the root's own options."""
        # At TAB on the first word there is nothing to parse, and converting no option takes half of the time.
        if ctx.resilient_parsing and not args:
            return []
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the word's command; an unknown word is answered from the registry, which knows what to install."""
        if (
            self.get_command(ctx, args[0]) is None
            and not ctx.resilient_parsing
            and not args[0].startswith("-")
        ):
            raise self._unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: Any, word: str) -> Exception:
        from separata import registry

        try:
            registry.default().plugin(word)
        except SeparataError as error:
            if not isinstance(error, UnknownName) or word in registry.default().known.plugins:
                return error
        words = self.list_commands(ctx)
        return UnknownName(
            f"there is no word {word!r}", registry.suggest(word, words, "see `separata --help`")
        )


def _leave_plugins_out(given: bool) -> None:
    if given:
        os.environ["SEPARATA_PLUGINS"] = ""


app = typer.Typer(
    cls=Root,
    help="Methods from recent papers, each a plugin that carries its proof.",
    epilog="Every other word is a plugin: `separata SLUG` shows its verbs, `separata prove SLUG` its claims.",
    no_args_is_help=True,
    # Plain help: importing rich would double the time that help and completion take.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    _no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins", help="Leave every plugin out.", is_eager=True, callback=_leave_plugins_out
        ),
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    events: Annotated[
        Path | None,
        typer.Option("--events", help="Append each event of the run to this file, as JSON lines."),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Write the figures of each step for TensorBoard.")
    ] = None,
) -> None:
    """Methods from recent papers, each a plugin that carries its proof."""
    from separata import registry

    from . import listeners

    registry.default().listen(listeners.Display())
    if events is not None:
        registry.default().listen(listeners.JsonLines(events))
    if tensorboard is not None:
        registry.default().listen(listeners.TensorBoard(tensorboard))


for words in (listing, health, evidence, authoring):
    words.add_to(app)


def command() -> TyperGroup:
    """The root as a command that can be run."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group
