"""How many bytes a training really holds: every tensor that can be reached from a model and its optimizer, by kind."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .parameter import QuantizedParameter

KINDS = (
    "codes",
    "scales",
    "plain weights",
    "gradients",
    "momentum",
    "second moment",
    "master weights",
    "errors",
    "buffers",
    "other",
)
_STATE = {
    "momentum": "momentum",
    "exp_avg": "momentum",
    "momentum_buffer": "momentum",
    "exp_avg_sq": "second moment",
    "master": "master weights",
    "error": "errors",
}


def memory_report(model: nn.Module, optimizer: Optimizer | None = None) -> dict[str, int]:
    """Bytes by kind, each storage counted once, and their ``total``.

    What no kind claims, but the garbage collector reaches from the two all the same, is ``other``: a hidden copy of
    the weights would stand there.

    Args:
        model: The model.
        optimizer: Its optimizer; moments exist after the first step.

    >>> report = memory_report(convert_(nn.Sequential(nn.Linear(64, 16, bias=False))))
    >>> report["codes"], report["scales"], report["total"]
    (1024, 64, 1088)
    """
    counted: dict[tuple[str, int], str] = {}
    sizes = dict.fromkeys(KINDS, 0)

    def count(kind: str, tensor: Tensor | None) -> None:
        for part in _stored(tensor):
            storage = part.untyped_storage()
            key = (str(part.device), storage.data_ptr())
            if storage.nbytes() and key not in counted:
                counted[key] = kind
                sizes[kind] += storage.nbytes()

    for parameter in model.parameters():
        if isinstance(parameter, QuantizedParameter):
            for name, part in parameter.parts.items():
                count("codes" if name == "codes" else "scales", part)
        else:
            count("plain weights", parameter)
        count("gradients", parameter.grad)
    for buffer in model.buffers():
        count("buffers", buffer)
    for state in optimizer.state.values() if optimizer else ():
        for name, value in state.items():
            count(_STATE.get(name, "other"), value if isinstance(value, Tensor) else None)
    for tensor in _reachable(model, optimizer):
        count("other", tensor)
    return {**sizes, "total": sum(sizes.values())}


def _stored(tensor: Tensor | None) -> list[Tensor]:
    """The tensors with storage that one consists of: a wrapper has none of its own."""
    if tensor is None:
        return []
    if isinstance(tensor, QuantizedParameter):
        return list(tensor.parts.values())
    if type(tensor) not in (Tensor, nn.Parameter, nn.Buffer) and hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return [part for name in names for part in _stored(getattr(tensor, name))]
    return [] if tensor.device.type == "meta" else [tensor]


def _reachable(*roots: Any) -> list[Tensor]:
    """All tensors that the garbage collector reaches, but through classes, modules and functions shared by all."""
    seen, waiting, found = {id(root) for root in roots}, [*roots], []
    while waiting:
        current = waiting.pop()
        if isinstance(current, Tensor):
            found.append(current)
            if current.grad is not None and current.is_leaf:
                waiting.append(current.grad)
        for held in gc.get_referents(current):
            if id(held) not in seen and not isinstance(
                held, type | ModuleType | FunctionType | torch.Generator
            ):
                seen.add(id(held))
                waiting.append(held)
    return found
