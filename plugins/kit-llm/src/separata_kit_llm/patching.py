"""Modules, methods and hooks of a model replaced for the length of a ``with`` block, and always put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import attrs
from torch import nn

from .errors import InvalidPatch

Where: TypeAlias = str | Callable[[str, nn.Module], bool]
"""Which modules: a dotted name (``*`` matches any part of it), or a predicate of name and module."""


@attrs.frozen
class Replace:
    """Put another module in the place of each selected one.

    Args:
        where: Which modules.
        make: The new module, or a function from the old module to the new one. A module that stands in several
            places is made once and stands in the same places again.
    """

    where: Where
    make: nn.Module | Callable[[nn.Module], nn.Module]


@attrs.frozen
class Wrap:
    """Run another function in the place of a method.

    Args:
        where: Which modules.
        around: Called as ``around(original, *args, **kwargs)``, with the bound method that was there.
        method: The method's name.
    """

    where: Where
    around: Callable[..., Any]
    method: str = attrs.field(default="forward", kw_only=True)


@attrs.frozen
class Hook:
    """Register a torch hook with each selected module.

    Args:
        where: Which modules.
        call: ``call(module, args, kwargs, output)`` after the forward, or ``call(module, args, kwargs)`` before it;
            what it returns is used as torch uses it.
        when: ``after`` or ``before`` the forward.
    """

    where: Where
    call: Callable[..., Any]
    when: Literal["after", "before"] = attrs.field(default="after", kw_only=True)


Patch: TypeAlias = Replace | Wrap | Hook
Target: TypeAlias = tuple[str, nn.Module]


@contextmanager
def patched(model: nn.Module, *patches: Patch) -> Iterator[nn.Module]:
    """Apply patches to a model, and undo every one of them when the block ends, however it ends.

    All patches are checked against the model first: one that can't be applied changes nothing. Blocks may be
    nested; the inner one sees what the outer one did. When a module is replaced and also wrapped or hooked, the
    wrap and the hook go to the module that was there before.

    Args:
        model: The model.
        patches: What to do, in order.

    Raises:
        InvalidPatch: If a patch selects nothing, names a method that is not there, replaces the model itself, or
            replaces what another one replaces or a part of it.

    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> with patched(model, Replace("1", nn.Tanh())):
    ...     print(model[1])
    Tanh()
    >>> print(model[1])
    ReLU()
    """
    modules = list(model.named_modules(remove_duplicate=False))
    planned = [(patch, _targets(patch, modules)) for patch in patches]
    _check_apart([name for patch, targets in planned if isinstance(patch, Replace) for name, _ in targets])
    steps: list[Callable[[], Callable[[], None]]] = []
    for patch, targets in planned:
        steps += _steps(model, patch, targets)
    with ExitStack() as undo:
        for step in steps:
            undo.callback(step())
        yield model


def _targets(patch: Patch, modules: list[Target]) -> list[Target]:
    where = patch.where
    if isinstance(where, str):
        found = [(name, module) for name, module in modules if name == where or fnmatchcase(name, where)]
    else:
        found = [(name, module) for name, module in modules if where(name, module)]
    if not found:
        names = [name for name, _ in modules if name]
        close = get_close_matches(where, names, n=3) if isinstance(where, str) else []
        raise InvalidPatch(
            f"{type(patch).__name__} selects no module: {where!r}",
            f"did you mean {' or '.join(close)}?" if close else "name a module as model.named_modules() does",
        )
    return found


def _check_apart(names: list[str]) -> None:
    for position, name in enumerate(names):
        if not name:
            raise InvalidPatch(
                "Replace selects the model itself", "replace modules inside it, or wrap its forward"
            )
        for other in names[:position]:
            if name == other or name.startswith(f"{other}.") or other.startswith(f"{name}."):
                raise InvalidPatch(
                    f"{other} and {name} are both replaced", "replace one of them; a part goes with its whole"
                )


def _steps(model: nn.Module, patch: Patch, targets: list[Target]) -> list[Callable[[], Callable[[], None]]]:
    """One function a change; calling it makes the change and returns what undoes it."""
    if isinstance(patch, Replace):
        made = {id(module): (module, _made(patch, name, module)) for name, module in targets}
        return [_replacing(model, name, made[id(module)][1]) for name, module in targets]
    distinct = {id(module): (name, module) for name, module in targets}
    if isinstance(patch, Wrap):
        for name, module in distinct.values():
            if not callable(getattr(module, patch.method, None)):
                raise InvalidPatch(
                    f"{name or 'the model'} ({type(module).__name__}) has no method {patch.method!r}",
                    "name one of its methods, such as forward",
                )
        return [_wrapping(module, patch) for _, module in distinct.values()]
    return [_hooking(module, patch) for _, module in distinct.values()]


def _made(patch: Replace, name: str, module: nn.Module) -> nn.Module:
    made = patch.make if isinstance(patch.make, nn.Module) else patch.make(module)
    if not isinstance(made, nn.Module):
        raise InvalidPatch(
            f"the replacement of {name} is a {type(made).__name__}", "return a torch.nn.Module"
        )
    return made


def _replacing(model: nn.Module, name: str, new: nn.Module) -> Callable[[], Callable[[], None]]:
    parent_name, _, child = name.rpartition(".")

    def apply() -> Callable[[], None]:
        # _modules itself, not setattr: it keeps the order and passes by a container's own rules on names.
        children = model.get_submodule(parent_name)._modules
        old = children[child]
        children[child] = new
        return lambda: children.__setitem__(child, old)

    return apply


def _wrapping(module: nn.Module, patch: Wrap) -> Callable[[], Callable[[], None]]:
    def apply() -> Callable[[], None]:
        original = getattr(module, patch.method)
        own = patch.method in module.__dict__

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return patch.around(original, *args, **kwargs)

        module.__dict__[patch.method] = wrapper

        def undo() -> None:
            if own:
                module.__dict__[patch.method] = original
            else:
                del module.__dict__[patch.method]

        return undo

    return apply


def _hooking(module: nn.Module, patch: Hook) -> Callable[[], Callable[[], None]]:
    def apply() -> Callable[[], None]:
        if patch.when == "before":
            return module.register_forward_pre_hook(patch.call, with_kwargs=True).remove
        return module.register_forward_hook(patch.call, with_kwargs=True).remove

    return apply
