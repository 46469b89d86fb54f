"""The settings of the routing: names, ranges and help, without anything heavy."""

from __future__ import annotations

from typing import Literal

import attrs
from attrs.validators import ge, gt, in_, le, optional


@attrs.frozen(kw_only=True)
class OEAConfig:
    """Settings of opportunistic expert activation; each becomes an option of the verbs.

    The defaults are the paper's simplified method: a fixed ``k0``, no more than the model's own k experts a token,
    no limit on how deep a token may look for experts that others load.
    """

    k0: int | None = attrs.field(
        default=None,
        validator=optional(ge(1)),
        metadata={"help": "Experts that each token may load by itself; half of the model's k if not given."},
    )
    p: float = attrs.field(
        default=1.0,
        validator=[gt(0), le(1)],
        metadata={"help": "Stop loading for a token once its experts hold this share of its score."},
    )
    k_max: int | None = attrs.field(
        default=None,
        validator=optional(ge(1)),
        metadata={"help": "Most experts of a token, the shared ones included; the model's k if not given."},
    )
    max_rank: int | None = attrs.field(
        default=None,
        validator=optional(ge(1)),
        metadata={"help": "Only a token's so many best experts may be joined; all if not given."},
    )
    renorm: Literal["model", "one"] = attrs.field(
        default="model",
        validator=in_(("model", "one")),
        metadata={"help": "Weights sum to what the model's own sum to (model), or to one (one)."},
    )
    deterministic: bool = attrs.field(
        default=False,
        metadata={"help": "Route each row alone: plain top-k0, the same in every batch."},
    )
    positions: int = attrs.field(
        default=1,
        validator=ge(1),
        metadata={"help": "Most new positions a row that still count as decoding (speculative checks)."},
    )
    target: float | None = attrs.field(
        default=None,
        validator=optional(gt(0)),
        metadata={"help": "Experts a layer and step to stay within; k0 is then the most it uses."},
    )
    target_seconds: float | None = attrs.field(
        default=None,
        validator=optional(gt(0)),
        metadata={"help": "Seconds a decode step to stay within, by a line fitted while it runs."},
    )
    expert_parallel: Literal["shared", "global"] = attrs.field(
        default="shared",
        validator=in_(("shared", "global")),
        metadata={
            "help": "Ranks hold the same tokens (shared), or decode their own and join unions (global)."
        },
    )
    shards: int = attrs.field(
        default=1,
        validator=ge(1),
        metadata={"help": "Ranks that own the experts in equal blocks; the fullest one's experts count."},
    )
    compiled: bool = attrs.field(
        default=False, metadata={"help": "Compile the routing with torch.compile, for accelerators."}
    )
