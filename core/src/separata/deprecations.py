"""Names on their way out: each says what replaces it and which version removes it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# Qualified name to the version that removes it. A test fails when the core reaches that version.
removals: dict[str, str] = {}


def deprecated(*, removed_in: str, instead: str) -> Callable[[F], F]:
    """Mark a public function or class as on its way out.

    Args:
        removed_in: The version that removes it, such as ``0.3``.
        instead: What to use instead, in the words of the warning.

    >>> @deprecated(removed_in="0.3", instead="find()")
    ... def search(): ...
    """

    def mark(function: F) -> F:
        name = f"{function.__module__}.{function.__qualname__}"
        removals[name] = removed_in

        @wraps(function)
        def warned(*arguments: Any, **options: Any) -> Any:
            message = f"{name} is removed in separata {removed_in}; use {instead}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*arguments, **options)

        return cast(F, warned)

    return mark


def overdue(version: str) -> list[str]:
    """What should be gone in a version."""
    from packaging.version import Version

    return sorted(name for name, removed_in in removals.items() if Version(version) >= Version(removed_in))
