"""The settings of a compressed cache."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
from attrs import field, frozen

from .errors import InvalidSetting

Mode: TypeAlias = Literal["dense", "sr", "sr-offload"]
Solver: TypeAlias = Literal["auto", "gram", "svd", "randomized"]
Grouping: TypeAlias = Literal["window", "cka"]


def _at_least(low: float) -> Any:
    def check(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
        if not value >= low:
            raise InvalidSetting(f"{attribute.name} is {value!r}", f"{attribute.name} is at least {low:g}")

    return check


def _one_of(*choices: str) -> Any:
    def check(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
        if value not in choices:
            raise InvalidSetting(
                f"{attribute.name} is {value!r}", f"{attribute.name} is one of {', '.join(choices)}"
            )

    return check


def _share(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidSetting(f"{attribute.name} is {value!r}", f"{attribute.name} lies between 0 and 1")


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@frozen(kw_only=True)
class XKVConfig:
    """How a cache is compressed.

    ``ratio`` decides the ranks unless they are given: the factors of a prompt take 1 / ``ratio`` of the bytes of
    its exact keys and values, with value ranks 1.5 times the key ranks (xKV).
    Ranks that are given hold for every group, whatever its width.
    """

    ratio: float = field(
        default=8.0,
        validator=_at_least(1),
        metadata=_help("Bytes of the exact keys and values over bytes of their factors."),
    )
    window: int = field(
        default=4, validator=_at_least(1), metadata=_help("Consecutive layers that share one basis.")
    )
    rank_key: int | None = field(
        default=None,
        validator=attrs.validators.optional(_at_least(1)),
        metadata=_help("Rank of the keys of a group, instead of a ratio."),
    )
    rank_value: int | None = field(
        default=None,
        validator=attrs.validators.optional(_at_least(1)),
        metadata=_help(
            "Rank of the values of a group; 1.5 times the rank of the keys if only that is given."
        ),
    )
    mode: Mode = field(
        default="dense",
        validator=_one_of("dense", "sr", "sr-offload"),
        metadata=_help(
            "dense attends to every token; sr rebuilds the tokens a query selects; sr-offload also keeps the "
            "values exact in the memory of the host."
        ),
    )
    budget: int = field(
        default=2048,
        validator=_at_least(1),
        metadata=_help("Tokens that each step selects for each key-value head (sr)."),
    )
    chunk: int = field(
        default=8, validator=_at_least(1), metadata=_help("Tokens that are selected together (sr).")
    )
    outlier_chunks: int = field(
        default=48,
        validator=_at_least(0),
        metadata=_help("Chunks kept exact because their mean represents them worst (sr)."),
    )
    local_chunks: int = field(
        default=4, validator=_at_least(0), metadata=_help("Last chunks of the prompt, kept exact (sr).")
    )
    min_length: int = field(
        default=256, validator=_at_least(1), metadata=_help("Shorter prompts stay exact.")
    )
    solver: Solver = field(
        default="auto",
        validator=_one_of("auto", "gram", "svd", "randomized"),
        metadata=_help("How the singular vectors are found."),
    )
    grouping: Grouping = field(
        default="window",
        validator=_one_of("window", "cka"),
        metadata=_help(
            "window groups every so many layers; cka groups neighbours that are alike, up to a window."
        ),
    )
    similarity: float = field(
        default=0.5,
        validator=_share,
        metadata=_help("Least mean CKA at which a neighbour joins a group (cka)."),
    )
    chunked_prefill: bool = field(
        default=False,
        metadata=_help(
            "The prompt comes in several forwards: keep it exact until the first generated token."
        ),
    )
    recompress_every: int | None = field(
        default=None,
        validator=attrs.validators.optional(_at_least(1)),
        metadata=_help("Compress again whenever so many exact tokens have been added; never if not given."),
    )
    trust_positions: bool = field(
        default=False,
        metadata=_help(
            "Take prompts of a batch that begin with a repeated token for prompts, not for padding."
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.budget < self.chunk:
            raise InvalidSetting(
                f"budget is {self.budget} tokens and chunk is {self.chunk}", "budget holds at least one chunk"
            )
        if self.rank_value is not None and self.rank_key is None:
            raise InvalidSetting(
                f"rank_value is {self.rank_value} and rank_key is not given", "give rank_key, or neither"
            )


@frozen(kw_only=True)
class StudyConfig:
    """What is measured of a model's layers."""

    tokens: int = field(
        default=2048, validator=_at_least(2), metadata=_help("Tokens of the text that the model reads.")
    )
    energy: float = field(
        default=0.95,
        validator=_share,
        metadata=_help("Share of the squared norm that the suggested ranks keep."),
    )
    threshold: float = field(
        default=0.5,
        validator=_share,
        metadata=_help("Least mean CKA at which a layer joins the group before it."),
    )
    windows: tuple[int, ...] = field(
        default=(1, 2, 4), metadata=_help("Group sizes to compare, separated by commas.")
    )
    ratios: tuple[float, ...] = field(
        default=(2.0, 4.0, 8.0, 16.0), metadata=_help("Compression ratios to compare, separated by commas.")
    )


@frozen(kw_only=True)
class EvaluationConfig:
    """Which caches are compared, and on how much text."""

    ratio: tuple[float, ...] = field(
        default=(2.0, 4.0, 8.0), metadata=_help("Compression ratios, separated by commas.")
    )
    window: tuple[int, ...] = field(
        default=(1, 2, 4),
        metadata=_help("Layers that share one basis, separated by commas; 1 is each on its own."),
    )
    mode: Mode = field(
        default="dense",
        validator=_one_of("dense", "sr", "sr-offload"),
        metadata=_help("dense, or a selective mode, which is scored token by token."),
    )
    budget: int = field(
        default=2048, validator=_at_least(1), metadata=_help("Tokens that each step selects (sr).")
    )
    prompt_tokens: int = field(
        default=1024, validator=_at_least(2), metadata=_help("Tokens of a prompt, which is compressed.")
    )
    continuation_tokens: int = field(
        default=128, validator=_at_least(1), metadata=_help("Tokens scored after a prompt.")
    )
    passages: int = field(default=1, validator=_at_least(1), metadata=_help("Prompts, spread over the text."))
    needles: int = field(
        default=0, validator=_at_least(0), metadata=_help("Needle-in-a-haystack prompts of the same length.")
    )
    peers: bool = field(default=True, metadata=_help("Compare with quantised and merged caches."))
