"""The registry: which plugins are there, what each offers, and lookup that loads only the one asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, overload

from . import discovery
from .catalog import Catalogue, catalogue
from .discovery import Installed
from .errors import (
    BlockedPlugin,
    BrokenPlugin,
    CatalogueUnreadable,
    ConflictingPlugins,
    IncompatiblePlugin,
    PluginError,
    UnknownName,
)
from .names import NAME, RESERVED
from .records import KINDS, Kind, Offer, PluginInfo, State

if TYPE_CHECKING:
    from .events import Event
    from .loading import Loader, Plugin
    from .protocols import Estimator, Kernel, Model, Scheduler, Trainer


class Registry:
    """Plugins by slug: found through entry points, loaded one by one.

    Args:
        installed: The claimants of each slug; what this environment's distributions claim if not given.
        known: The catalogue; the one of this core if not given.
        allow: Slugs that may be loaded; all if None. It is applied before anything is imported.
        strict: Raise at once, in ``plugins()`` too, instead of recording a broken plugin.
    """

    def __init__(
        self,
        installed: Mapping[str, Sequence[Installed]] | None = None,
        *,
        known: Catalogue | None = None,
        allow: Iterable[str] | None = None,
        strict: bool = False,
    ) -> None:
        self._installed = discovery.scan() if installed is None else installed
        self._known = known
        self._catalogue_problem: CatalogueUnreadable | None = None
        self._allow = None if allow is None else frozenset(allow)
        self._strict = strict
        self._plugins: dict[str, Plugin] = {}
        self._failed: dict[str, PluginError] = {}
        self._loader: Loader | None = None
        self._listeners: list[object] = []
        self._lock = RLock()

    @property
    def known(self) -> Catalogue:
        """The catalogue of the extension registry, read when first needed; empty if it can't be read."""
        if self._known is None:
            try:
                self._known = catalogue()
            except CatalogueUnreadable as error:
                self._catalogue_problem = error
                self._known = Catalogue({}, frozenset())
        return self._known

    @property
    def catalogue_problem(self) -> CatalogueUnreadable | None:
        """Why the catalogue can't be read, if it can't."""
        _ = self.known
        return self._catalogue_problem

    def slugs(self) -> list[str]:
        """The installed slugs that may be loaded, in order; touches names only."""
        return sorted(slug for slug in self._installed if self._allow is None or slug in self._allow)

    def installed(self, slug: str) -> Installed:
        """The distribution's claim to a slug: its name, version and summary, without an import."""
        return self._installed[slug][0]

    def loadable(self, slug: str) -> Plugin | None:
        """The plugin if it loads, None if it is refused or broken; with ``strict`` it raises instead."""
        try:
            return self.plugin(slug)
        except PluginError:
            if self._strict:
                raise
            return None

    def plugins(self) -> list[PluginInfo]:
        """Every slug that is installed or catalogued, with its state; imports no plugin."""
        absent = self.known.plugins.keys() - self._installed.keys()
        rows = [self._info(slug) for slug in self._installed]
        rows += [
            PluginInfo(slug, entry.dist, state="catalogued", summary=entry.summary)
            for slug, entry in self.known.plugins.items()
            if slug in absent
        ]
        return sorted(rows, key=lambda row: row.slug)

    def plugin(self, slug: str) -> Plugin:
        """Load one plugin.

        Raises:
            UnknownName: If it is not installed; says what to install if it is catalogued.
            PluginError: If it is blocked, incompatible, in conflict or broken.
        """
        if slug in self._plugins:
            return self._plugins[slug]
        if slug not in self._installed:
            raise self._unknown_plugin(slug)
        refused = self._refused(slug)
        if refused is not None:
            raise refused
        # A second thread waits for the first one's result instead of loading the same plugin again.
        with self._lock:
            if slug in self._failed:
                raise self._failed[slug]
            if slug not in self._plugins:
                try:
                    self._plugins[slug] = self._load(slug)
                except PluginError as error:
                    self._failed[slug] = error
                    raise
            return self._plugins[slug]

    def offer(self, kind: Kind, name: str) -> Offer:
        """The record of one offer, looked up as ``slug/name``, or as ``slug`` for a plugin's first of that kind."""
        slug, _, rest = name.partition("/")
        if slug not in self._installed and slug not in self.known.plugins:
            raise self._unknown_offer(kind, name)
        offers = [offer for offer in self.plugin(slug).offers if offer.kind == kind]
        for offer in offers:
            if not rest or offer.name == rest:
                return offer
        raise self._unknown_offer(kind, name, [f"{slug}/{offer.name}" for offer in offers])

    def get(self, kind: Kind, name: str) -> Any:
        """Import and return what an offer names."""
        offer = self.offer(kind, name)
        return load_object(offer.object, name.partition("/")[0])

    def make(self, kind: Kind, name: str, **settings: Any) -> Any:
        """Build what an offer names: from its validated config, or from the settings themselves if it has none."""
        offer = self.offer(kind, name)
        built = self.get(kind, name)
        if offer.config is None:
            return built(**settings)
        from .config import resolve

        config = resolve(load_object(offer.config, name.partition("/")[0]), overrides=settings)
        return built(config.value)

    def emit(self, event: Event) -> None:
        """Tell every listener of the loaded plugins; one that raises is reported once and stops nothing."""
        if self._loader is not None or self._listeners:
            self._loading().emit(event)

    def listen(self, listener: object) -> None:
        """Add an object or module with a ``separata_event`` hook for the rest of the process."""
        self._listeners.append(listener)
        if self._loader is not None:
            self._loader.listen(listener)

    def hook(self, name: str, **arguments: Any) -> Any:
        """Call a hook of the plugins loaded so far."""
        return self._loading().call(name, **arguments)

    def _loading(self) -> Loader:
        with self._lock:
            if self._loader is None:
                from .loading import Loader

                self._loader = Loader()
                for listener in self._listeners:
                    self._loader.listen(listener)
            return self._loader

    def _load(self, slug: str) -> Plugin:
        return self._loading().load(self._installed[slug][0])

    def _info(self, slug: str) -> PluginInfo:
        found = self._installed[slug][0]
        state: State = "installed"
        reason = ""
        problem: PluginError | None
        if slug in self._plugins:
            state = "loaded"
        elif (problem := self._failed.get(slug) or self._refused(slug)) is not None:
            if self._strict and not isinstance(problem, BlockedPlugin):
                raise problem
            state, reason = _state_of(problem), problem.problem
        return PluginInfo(
            slug, found.dist, version=found.version, state=state, reason=reason, summary=found.summary
        )

    def _refused(self, slug: str) -> PluginError | None:
        """Why a plugin may not be imported, decided from names and metadata alone."""
        claimants = self._installed[slug]
        found = claimants[0]
        if self._allow is not None and slug not in self._allow:
            return BlockedPlugin(
                f"plugin {slug!r} is left out by the allow-list",
                f"add {slug} to SEPARATA_PLUGINS, or unset it, and drop --no-plugins",
            )
        if not NAME.fullmatch(slug):
            return BrokenPlugin(
                f"{found.dist} claims the slug {slug!r}",
                "tell its author: a slug is lower-case words of letters and digits joined by hyphens",
            )
        if slug in RESERVED:
            return ConflictingPlugins(
                f"{found.dist} claims the slug {slug!r}, which is a word of the command line or of the project",
                f"uninstall {found.dist}, or ask its author to choose another slug",
            )
        if len(claimants) > 1:
            names = " and ".join(f"{claimant.dist} {claimant.version}" for claimant in claimants)
            return ConflictingPlugins(
                f"the slug {slug!r} is claimed by {names}", "uninstall all but one of them"
            )
        entry = self.known.plugins.get(slug)
        if entry is not None and entry.dist != found.dist:
            return ConflictingPlugins(
                f"the slug {slug!r} is claimed by {found.dist}, but the registry keeps it for {entry.dist}",
                f"uninstall {found.dist}, or ask its author to choose another slug",
            )
        if entry is None and slug in self.known.reserved and found.dist != f"separata-{slug}":
            return ConflictingPlugins(
                f"the slug {slug!r} is claimed by {found.dist}, but it is reserved",
                f"uninstall {found.dist}, or ask its author to choose another slug",
            )
        unmet = found.unmet_requirement()
        if unmet:
            return IncompatiblePlugin(
                f"plugin {slug!r} ({found.dist} {found.version}) {unmet}",
                f"install a {found.dist} that fits: python -m pip install --upgrade {found.dist} separata",
            )
        return None

    def _unknown_plugin(self, slug: str) -> UnknownName:
        entry = self.known.plugins.get(slug)
        if entry is not None:
            return UnknownName(
                f"plugin {slug!r} is not installed",
                f"it ships in {entry.dist}: python -m pip install {entry.dist}",
            )
        names = [*self._installed, *self.known.plugins]
        return UnknownName(f"there is no plugin {slug!r}", suggest(slug, names, "see `separata list --all`"))

    def _unknown_offer(self, kind: Kind, name: str, siblings: Sequence[str] = ()) -> UnknownName:
        if kind not in KINDS:
            return UnknownName(f"there is no kind {kind!r}", f"the kinds are {', '.join(KINDS)}")
        names = [
            f"{slug}/{offer.name}"
            for slug, holder in (self.known.plugins | self._plugins).items()
            for offer in holder.offers
            if offer.kind == kind
        ]
        otherwise = f"there are {', '.join(siblings)}" if siblings else f"see `separata find --kind {kind}`"
        bare = [full for full in names if full.endswith(f"/{name}")]
        return UnknownName(f"there is no {kind} {name!r}", suggest(name, bare + names, otherwise, bare))


def load_object(path: str, slug: str) -> Any:
    """Import ``package.module:attribute`` for a plugin.

    Raises:
        BrokenPlugin: If the module does not import or has no such attribute.
    """
    module, _, attribute = path.partition(":")
    try:
        found = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    # A module that calls sys.exit() while it is imported must not end the program as if all were well.
    except (Exception, SystemExit) as error:
        detail = " ".join(str(error).split())
        raise BrokenPlugin(
            f"plugin {slug!r} names {path}, which does not load: {type(error).__name__}: {detail}",
            f"install what it needs, or tell its author; `separata doctor {slug}` shows more",
        ) from error
    return found


def select(records: Sequence[Any], names: Iterable[str], what: str) -> list[Any]:
    """The records of these names, or all of them if no name is given.

    Raises:
        UnknownName: If a name is not among them.
    """
    by_name = {record.name: record for record in records}
    names = list(names)
    for name in names:
        if name not in by_name:
            raise UnknownName(
                f"there is no {what} named {name!r}",
                suggest(name, list(by_name), f"there are {', '.join(by_name) or 'none'}"),
            )
    return [by_name[name] for name in names or by_name]


def _state_of(problem: PluginError) -> State:
    if isinstance(problem, BlockedPlugin):
        return "blocked"
    return "incompatible" if isinstance(problem, IncompatiblePlugin) else "broken"


def suggest(name: str, names: Sequence[str], otherwise: str, first: Sequence[str] = ()) -> str:
    """The closest of some names as a question, or what to do otherwise."""
    close = list(dict.fromkeys([*first, *get_close_matches(name, names, n=3)]))[:3]
    return f"did you mean {' or '.join(close)}?" if close else otherwise


@cache
def default() -> Registry:
    """The registry of this process, as the environment asks for it."""
    return Registry(allow=discovery.allow_list(), strict=os.environ.get("SEPARATA_STRICT") == "1")


@overload
def get(kind: Literal["model"], name: str) -> type[Model]: ...
@overload
def get(kind: Literal["trainer"], name: str) -> type[Trainer]: ...
@overload
def get(kind: Literal["estimator"], name: str) -> type[Estimator]: ...
@overload
def get(kind: Literal["kernel"], name: str) -> Kernel: ...
@overload
def get(kind: Literal["scheduler"], name: str) -> type[Scheduler]: ...
def get(kind: Kind, name: str) -> Any:
    """Import one offer by kind and name; loads that one plugin only.

    Example: ``separata.get("kernel", "xkv/crosslayer-svd")``
    """
    return default().get(kind, name)


@overload
def make(kind: Literal["model"], name: str, **settings: Any) -> Model: ...
@overload
def make(kind: Literal["trainer"], name: str, **settings: Any) -> Trainer: ...
@overload
def make(kind: Literal["estimator"], name: str, **settings: Any) -> Estimator: ...
@overload
def make(kind: Literal["kernel"], name: str, **settings: Any) -> Kernel: ...
@overload
def make(kind: Literal["scheduler"], name: str, **settings: Any) -> Scheduler: ...
def make(kind: Kind, name: str, **settings: Any) -> Any:
    """Build one offer from its validated settings."""
    return default().make(kind, name, **settings)


def plugins() -> list[PluginInfo]:
    """Every slug with its distribution, version, state and reason."""
    return default().plugins()


def emit(event: Event) -> None:
    """Tell the listeners of this process's registry."""
    default().emit(event)
