"""Settings of the verbs."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import field, frozen

from .errors import InvalidSetting

METHODS = ("mixfp4", "nvfp4", "nvint4", "fouroversix")
SKIPPED = ("lm_head",)


def _methods(_: object, attribute: attrs.Attribute[Any], value: str | tuple[str, ...]) -> None:
    for name in (value,) if isinstance(value, str) else value:
        if name not in METHODS:
            raise InvalidSetting(f"{attribute.name} is {name!r}", f"methods are {', '.join(METHODS)}")


def _at_least(low: int) -> Any:
    def check(_: object, attribute: attrs.Attribute[Any], value: int) -> None:
        if value < low:
            raise InvalidSetting(f"{attribute.name} is {value}", f"{attribute.name} is at least {low}")

    return check


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@frozen(kw_only=True)
class QuantizeConfig:
    """How a model's linear layers are quantised."""

    method: str = field(
        default="mixfp4", validator=_methods, metadata=_help("mixfp4, nvfp4, nvint4 or fouroversix.")
    )
    activations: bool = field(default=True, metadata=_help("Quantise the inputs of layers too (W4A4)."))
    per_row: bool = field(default=False, metadata=_help("Give each token a tensor scale of its own."))
    skip: tuple[str, ...] = field(
        default=SKIPPED, metadata=_help("Names or patterns of layers that stay as they are.")
    )
    rotation: int = field(
        default=0,
        validator=_at_least(0),
        metadata=_help("Size of a random Hadamard rotation before quantising, a power of two; 0 for none."),
    )
    gptq_tokens: int = field(
        default=0,
        validator=_at_least(0),
        metadata=_help("Tokens of --text on which GPTQ compensates errors; 0 rounds to nearest."),
    )
    pad: bool = field(default=False, metadata=_help("Fill up rows that are no multiple of 16 with zeros."))


@frozen(kw_only=True)
class EvaluationConfig:
    """What is compared by perplexity."""

    methods: tuple[str, ...] = field(default=METHODS, validator=_methods, metadata=_help("What to compare."))
    weights: bool = field(default=True, metadata=_help("Quantise weights."))
    activations: bool = field(default=True, metadata=_help("Quantise the inputs of layers."))
    tokens: int = field(
        default=2048, validator=_at_least(2), metadata=_help("Tokens of the text that are scored.")
    )
    window: int = field(
        default=2048, validator=_at_least(2), metadata=_help("Tokens the model sees at a time.")
    )
    skip: tuple[str, ...] = field(
        default=SKIPPED, metadata=_help("Names or patterns of layers that stay as they are.")
    )
