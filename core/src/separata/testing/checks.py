"""What a check is: a function that is content or says why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs


class CheckFailed(Exception):
    """What the check found wrong, in one sentence."""


class NotOffered(Exception):
    """The check does not apply: the offer promises nothing of the kind."""


@attrs.frozen
class Check:
    """One thing that every offer of a kind keeps.

    Args:
        name: The function's name, with hyphens.
        says: The rule in one sentence, from the function's docstring.
        run: Called with the subject; raises ``CheckFailed`` or ``NotOffered``.
    """

    name: str
    says: str
    run: Callable[[Any], None]


def suite(*functions: Callable[[Any], None]) -> tuple[Check, ...]:
    """The checks of a module, in order."""
    return tuple(
        Check(function.__name__.replace("_", "-"), (function.__doc__ or "").split("\n")[0], function)
        for function in functions
    )


def need(condition: object, failure: str) -> None:
    """Fail the check unless the condition holds."""
    if not condition:
        raise CheckFailed(failure)


def leaves(value: Any) -> list[Any]:
    """The tensors and plain values of a result, in order, whatever tuples, lists, tables or records hold them."""
    if isinstance(value, Mapping):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [leaf for item in value for leaf in leaves(item)]
    if attrs.has(type(value)):
        return [leaf for field in attrs.fields(type(value)) for leaf in leaves(getattr(value, field.name))]
    return [value]


def same(first: Any, second: Any) -> bool:
    """Whether two results are equal bit for bit, NaN equal to NaN."""
    import torch

    ours, others = leaves(first), leaves(second)
    if len(ours) != len(others):
        return False
    for one, other in zip(ours, others, strict=True):
        if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
            if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
                return False
            if one.dtype != other.dtype or not torch.equal(torch.nan_to_num(one), torch.nan_to_num(other)):
                return False
            if one.is_floating_point() and not torch.equal(one.isnan(), other.isnan()):
                return False
        elif hasattr(one, "tobytes"):
            if one.tobytes() != other.tobytes():
                return False
        elif one != other and not (one != one and other != other):
            return False
    return True
