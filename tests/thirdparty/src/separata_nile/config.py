"""The settings of nile: names, ranges and help, without anything heavy."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class NileConfig:
    """Settings; each becomes an option of the verbs and a variable of the environment.

    Args:
        strength: How strongly the method acts, from 0, where it does nothing.
    """

    strength: float = attrs.field(
        default=0.5,
        validator=attrs.validators.ge(0),
        metadata={"help": "How strongly the method acts, from 0, where it does nothing."},
    )
