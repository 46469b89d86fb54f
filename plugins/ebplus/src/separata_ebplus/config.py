"""The settings of the controller: names, ranges and help, without anything heavy."""

from __future__ import annotations

import math

import attrs
from attrs.validators import ge, gt, le, lt


@attrs.frozen(kw_only=True)
class EBPlusConfig:
    """Settings of a batch scheduler; each becomes an option of the verbs and a variable of the environment.

    Each setting's help says what it is; times are in seconds.
    """

    slots: int = attrs.field(
        default=256, validator=ge(1), metadata={"help": "Most requests that run at once."}
    )
    token_budget: int = attrs.field(
        default=8192, validator=ge(1), metadata={"help": "Most tokens of one iteration."}
    )
    capacity: float = attrs.field(
        default=math.inf, validator=gt(0), metadata={"help": "Tokens that the KV cache holds."}
    )
    overflow: float = attrs.field(
        default=1e-3,
        validator=[gt(0), lt(0.5)],
        metadata={"help": "Probability that the caches may outgrow the capacity."},
    )
    reserve_margin: float = attrs.field(
        default=0.1,
        validator=ge(0),
        metadata={"help": "Room kept for each new request's output beyond its mean."},
    )
    delta: float = attrs.field(
        default=0.0,
        metadata={"help": "Seconds a token that exclusive must win by; below 0 it is favoured."},
    )
    window: int = attrs.field(
        default=1024, validator=ge(16), metadata={"help": "Finished requests that statistics remember."}
    )
    refresh_completions: int = attrs.field(
        default=64, validator=ge(1), metadata={"help": "Completions after which the threshold is renewed."}
    )
    refresh_seconds: float = attrs.field(
        default=2.0, validator=gt(0), metadata={"help": "Seconds after which the threshold is renewed."}
    )
    half_life: float = attrs.field(
        default=16.0, validator=gt(0), metadata={"help": "Half-life of the observed occupancy in iterations."}
    )
    hysteresis: int = attrs.field(
        default=8, validator=ge(1), metadata={"help": "Evaluations in a row before the mode changes."}
    )
    ttft_guard: float = attrs.field(
        default=math.inf,
        validator=gt(0),
        metadata={"help": "Seconds the oldest request may wait before a prefill phase starts early."},
    )
    prior_prompt: float = attrs.field(
        default=512.0, validator=gt(0), metadata={"help": "Mean prompt length until requests were seen."}
    )
    prior_output: float = attrs.field(
        default=256.0, validator=gt(0), metadata={"help": "Mean output length until requests were seen."}
    )
    allow_decreasing: bool = attrs.field(
        default=False, metadata={"help": "Let the hazard fall with time, too."}
    )
    theta_max: float = attrs.field(
        default=0.9, validator=[gt(0), le(0.9)], metadata={"help": "The largest threshold."}
    )
