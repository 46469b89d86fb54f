"""Settings of a training."""

from __future__ import annotations

from typing import Literal

import attrs
from attrs.validators import ge, gt, le


@attrs.frozen(kw_only=True)
class TrainConfig:
    """How a language model is trained on quantised weights."""

    quant: Literal["fp8_e4m3", "int8", "int4", "mixfp4", "nvfp4"] = attrs.field(
        default="fp8_e4m3", metadata={"help": "What weights of linear layers are stored as."}
    )
    granularity: str = attrs.field(
        default="",
        metadata={"help": "What shares a scale: tensor, row, or a number; empty is the format's own."},
    )
    scale: Literal["dynamic", "frozen"] = attrs.field(
        default="dynamic", metadata={"help": "Whether scales follow the weights or stay as they begin."}
    )
    mismatch: Literal["error", "row", "skip"] = attrs.field(
        default="error", metadata={"help": "What becomes of weights whose rows the groups don't divide."}
    )
    rounding: Literal["sr", "rtn"] = attrs.field(
        default="sr", metadata={"help": "Stochastic, or to nearest."}
    )
    compensation: Literal["eco", "none", "exact", "master"] = attrs.field(
        default="eco", metadata={"help": "What becomes of rounding errors; the last three are ECO's rivals."}
    )
    momentum_dtype: Literal["float32", "bfloat16"] = attrs.field(
        default="float32", metadata={"help": "Of quantised weights' momentum."}
    )
    lr: float = attrs.field(default=3e-3, validator=gt(0), metadata={"help": "Highest learning rate."})
    last_lr: float = attrs.field(
        default=0.01,
        validator=[ge(0), le(1)],
        metadata={"help": "Share of it that the cosine ends with: errors are carried badly at rates near 0."},
    )
    warm_up: float = attrs.field(
        default=0.1,
        validator=[ge(0), le(1)],
        metadata={"help": "Share of the steps in which it rises from 0."},
    )
    weight_decay: float = attrs.field(default=0.1, validator=ge(0), metadata={"help": "Decoupled."})
    beta1: float = attrs.field(
        default=0.9, validator=gt(0), metadata={"help": "Decay of the first moment, above 0."}
    )
    beta2: float = attrs.field(
        default=0.95, validator=ge(0), metadata={"help": "Decay of the second moment."}
    )
    clip: float = attrs.field(
        default=1.0, validator=gt(0), metadata={"help": "Largest norm of all gradients together."}
    )
    steps: int = attrs.field(default=500, validator=ge(1), metadata={"help": "Optimizer steps."})
    batch: int = attrs.field(default=8, validator=ge(1), metadata={"help": "Windows of text a forward pass."})
    accumulate: int = attrs.field(
        default=1, validator=ge(1), metadata={"help": "Forward passes whose gradients make one step."}
    )
    length: int = attrs.field(default=64, validator=ge(2), metadata={"help": "Tokens a window."})
    held_out: float = attrs.field(
        default=0.1,
        validator=[gt(0), le(0.5)],
        metadata={"help": "Last share of the text, for scoring only."},
    )
    checkpoint_every: int = attrs.field(
        default=0, validator=ge(0), metadata={"help": "Steps between checkpoints; 0 writes one at the end."}
    )
