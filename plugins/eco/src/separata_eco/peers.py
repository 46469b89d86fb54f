"""Torchao's ways to train in few bytes, as peers: 8-bit moments, and int8 weights with stochastic rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from separata.errors import PackageMissing

from .config import TrainConfig
from .conversion import SKIPPED


def adamw_8bit(model: nn.Module, config: TrainConfig) -> Optimizer:
    """AdamW of torchao with moments of 8 bits, on bfloat16 weights that are rounded stochastically.

    Args:
        model: Converted to bfloat16 in place.
        config: Learning rate, betas and weight decay.
    """
    AdamW8bit = _torchao("optim").AdamW8bit
    model.to(torch.bfloat16)
    made: Optimizer = AdamW8bit(model.parameters(), bf16_stochastic_round=True, **_options(config))
    return made


def int8_weights(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Weights of linear layers in int8 with a scale a row, rounded stochastically, as torchao trains them.

    Args:
        model: Converted in place, but for its head.
        config: Learning rate, betas and weight decay.
    """
    int8 = _torchao("prototype.quantized_training").int8_weight_only_quantized_training

    def chosen(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and name not in SKIPPED

    _torchao("quantization").quantize_(model, int8(), chosen)
    made: Optimizer = _torchao("optim")._AdamW(model.parameters(), **_options(config))
    return made


@contextmanager
def eager(seed: int) -> Iterator[None]:
    """Run torchao's optimizers as they are written, with the global generator seeded, from which they draw.

    Compiling them takes longer than a small proof.

    Args:
        seed: Of the draws; the generator is as it was afterwards.
    """
    with torch.compiler.set_stance("force_eager"), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _torchao(module: str) -> Any:
    try:
        return import_module(f"torchao.{module}")
    except ImportError as error:
        raise PackageMissing.extra("torchao", "separata-eco[full]") from error


def _options(config: TrainConfig) -> dict[str, Any]:
    return {"lr": config.lr, "betas": (config.beta1, config.beta2), "weight_decay": config.weight_decay}
