"""One resolver for settings: command line, then environment, then file, then default, and where each came from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import attrs

from .errors import InvalidConfig, SeparataError

if TYPE_CHECKING:
    from cattrs import Converter

C = TypeVar("C")


@attrs.frozen
class Resolved(Generic[C]):
    """A config with the source of each of its settings.

    Args:
        value: The config, an instance of a frozen attrs class.
        provenance: Dotted setting name to its source: ``--option``, ``$VARIABLE``, a file's path or ``default``.
    """

    value: C
    provenance: dict[str, str]


@attrs.frozen
class Setting:
    """One setting of a config class.

    Args:
        name: Its field's name; ``outer.inner`` for a field of a nested config.
        kind: Its type.
        default: Its default, or ``attrs.NOTHING``.
        help: What it means.
    """

    name: str
    kind: Any
    default: Any
    help: str


def settings(cls: type[Any], prefix: str = "", base: Any = None) -> Iterator[Setting]:
    """The settings of a config class, those of nested configs in their place.

    Args:
        cls: A frozen attrs class.
        prefix: Put before each name.
        base: An instance that gives the defaults, if not the class itself.
    """
    hints = get_type_hints(cls)
    for field in attrs.fields(cls):
        kind, name, default = hints[field.name], prefix + field.name, _default(field, base)
        if attrs.has(kind):
            yield from settings(kind, f"{name}.", None if default is attrs.NOTHING else default)
        else:
            yield Setting(name, kind, default, field.metadata.get("help", ""))


def resolve(
    cls: type[C],
    *,
    file: Path | str | None = None,
    env: str = "",
    overrides: Mapping[str, Any] | None = None,
) -> Resolved[C]:
    """Build a config from all its sources; the first that names a setting wins.

    Args:
        cls: A frozen attrs class; a field may itself be one, whose settings are named ``outer.inner``.
        file: TOML, or JSON; of a run's config.json the ``config`` table is taken, so that it repeats the run.
        env: Prefix of environment variables; ``SEPARATA_XKV_`` reads ``SEPARATA_XKV_RATIO``.
        overrides: Settings from the command line or the caller; None means not given.

    Raises:
        InvalidConfig: If a setting is unknown, of the wrong type, or refused by its validator.
    """
    given: dict[str, tuple[Any, str]] = {}
    names = [setting.name for setting in settings(cls)]
    if file is not None:
        given.update({name: (value, str(file)) for name, value in _flatten(read(file), cls).items()})
    if env:
        for name in names:
            variable = env + name.replace(".", "__").upper()
            if variable in os.environ:
                given[name] = (os.environ[variable], f"${variable}")
    for name, value in _flatten(overrides or {}, cls).items():
        if value is not None:
            given[name] = (value, f"--{name.replace('_', '-')}")
    for name, (_, source) in given.items():
        if name not in names:
            raise _unknown(name, source, names)
    value = _build(cls, "", given)
    return Resolved(value, {name: given[name][1] if name in given else "default" for name in names})


def read(file: Path | str) -> dict[str, Any]:
    """Read a TOML or JSON file of settings; a run's config.json gives the settings of that run."""
    path = Path(file)
    try:
        parse: Callable[[str], Any] = json.loads if path.suffix == ".json" else tomllib.loads
        data = parse(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{path} can't be read: {error.strerror}", "name a TOML or JSON file") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path} is not valid: {error}", "write settings as TOML or JSON") from error
    if not isinstance(data, dict):
        raise InvalidConfig(
            f"{path} holds a {type(data).__name__}", "settings are a table of names and values"
        )
    if path.suffix == ".json" and isinstance(data.get("config"), dict):
        return dict(data["config"])
    return data


def dump(config: Any) -> dict[str, Any]:
    """The settings as plain numbers, strings, lists and tables."""
    plain: dict[str, Any] = _converter().unstructure(config)
    return plain


def fingerprint(config: Any) -> str:
    """A hash of the settings that does not depend on their order."""
    text = json.dumps(dump(config) if attrs.has(type(config)) else config, sort_keys=True, default=_stable)
    return hashlib.sha256(text.encode()).hexdigest()


def _stable(value: Any) -> Any:
    if attrs.has(type(value)):
        return dump(value)
    # The order of a set changes from process to process.
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else str(value)


def _default(field: attrs.Attribute[Any], base: Any) -> Any:
    if base is not None:
        return getattr(base, field.name)
    default: Any = field.default
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default
    return attrs.NOTHING if default.takes_self else default.factory()


def _flatten(data: Mapping[str, Any], cls: type[Any], prefix: str = "") -> dict[str, Any]:
    hints = get_type_hints(cls)
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping) and attrs.has(hints.get(name, object)):
            flat.update(_flatten(value, hints[name], f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _build(cls: type[C], prefix: str, given: Mapping[str, tuple[Any, str]], base: Any = None) -> C:
    hints = get_type_hints(cls)
    arguments: dict[str, Any] = {}
    for field in attrs.fields(cast(type[Any], cls)):
        name, wanted, default = prefix + field.name, hints[field.name], _default(field, base)
        if attrs.has(wanted):
            inner = None if default is attrs.NOTHING else default
            arguments[field.alias] = _build(wanted, f"{name}.", given, inner)
        elif name in given:
            arguments[field.alias] = _structure(name, *given[name], wanted)
        elif base is not None:
            arguments[field.alias] = default
        elif field.default is attrs.NOTHING:
            raise InvalidConfig(f"the setting {name} is not given", f"{name} is {_described(wanted)}")
    try:
        return cls(**arguments)
    except SeparataError:
        raise
    except (TypeError, ValueError) as error:
        raise _refused(error, cls, prefix, given) from error


def _structure(name: str, value: Any, source: str, wanted: Any) -> Any:
    try:
        return _converter().structure(value, wanted)
    except Exception as error:
        raise InvalidConfig(
            f"{name} is {value!r} (from {source})", f"{name} is {_described(wanted)}"
        ) from error


def _described(wanted: Any) -> str:
    """A type in words: one of some values, several numbers, a number."""
    if get_origin(wanted) is Literal:
        return "one of " + ", ".join(map(str, get_args(wanted)))
    if _is_tuple(wanted):
        first, *others = get_args(wanted)
        if others == [Ellipsis]:
            return f"{_described(first)}, several joined by commas"
        return f"{1 + len(others)} values joined by commas: {', '.join(map(_described, [first, *others]))}"
    if type(None) in get_args(wanted):
        return " or ".join(_described(part) for part in get_args(wanted) if part is not type(None))
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return words.get(wanted, str(wanted))


def _refused(
    error: Exception, cls: type[Any], prefix: str, given: Mapping[str, tuple[Any, str]]
) -> InvalidConfig:
    # attrs validators put the sentence first and the attribute, class and value behind it.
    sentence = str(error.args[0]) if error.args else str(error)
    sources = [
        f"{name} from {source}"
        for name, (_, source) in given.items()
        if name.startswith(prefix) and re.search(rf"\b{re.escape(name.removeprefix(prefix))}\b", sentence)
    ]
    where = f" ({', '.join(sources)})" if sources else ""
    names = ", ".join(prefix + field.name for field in attrs.fields(cls))
    return InvalidConfig(f"{sentence}{where}", f"the settings of {cls.__name__} are {names}")


def _unknown(name: str, source: str, names: list[str]) -> InvalidConfig:
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return InvalidConfig(
        f"there is no setting {name} (from {source})", f"{hint}the settings are {', '.join(names)}"
    )


def _bool(value: Any, _: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        return value.lower() in ("1", "true", "yes", "on")
    raise ValueError(value)


def _int(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(value)
    return int(value)


def _float(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    return float(value)


def _str(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _tuple_hook(wanted: Any) -> Any:
    items = get_args(wanted)

    def structure(value: Any, _: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value.strip() else []
        parts = list(value)
        kinds = items[:1] * len(parts) if items[1:] == (Ellipsis,) else items
        return tuple(_converter().structure(part, kind) for part, kind in zip(parts, kinds, strict=True))

    return structure


def _is_tuple(wanted: Any) -> bool:
    return get_origin(wanted) is tuple and bool(get_args(wanted))


@cache
def _converter() -> Converter:
    # cattrs takes as long to import as typer's core, and only files, variables and overrides need it.
    import cattrs

    converter = cattrs.Converter()
    for kind, hook in ((bool, _bool), (int, _int), (float, _float), (str, _str)):
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_factory(_is_tuple, _tuple_hook)
    return converter
