"""Tensors to report on, from whatever holds some: safetensors, .npy, or a model with its weights or its activations."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .errors import NothingToQuantise, UnreadableFile
from .storage import load_tensors
from .tensor import MixFP4Tensor


def read_tensors(
    source: str, *, text: str = "", tokens: int = 512, only: str = "*"
) -> dict[str, MixFP4Tensor | Tensor]:
    """Tensors by name.

    Args:
        source: A .safetensors or .npy file; or a model as ``separata_kit_llm.load`` takes it.
        text: For a model: a text, whose keys, values and inputs of linear layers are taken; its weights if empty.
        tokens: Tokens of the text.
        only: Pattern of the names that are wanted; several are joined by commas.

    Raises:
        UnreadableFile: If the file can't be read.
        NothingToQuantise: If it holds no floating tensor of that name.
    """
    path = Path(source).expanduser()
    if path.suffix == ".npy":
        found: dict[str, MixFP4Tensor | Tensor] = {path.stem: _array(path)}
    elif path.suffix == ".safetensors":
        found = load_tensors(path)
    else:
        found = _of_model(source, text, tokens)
    patterns = [part.strip() for part in only.split(",")]
    kept = {
        name: tensor
        for name, tensor in found.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
        and (
            isinstance(tensor, MixFP4Tensor)
            or (tensor.is_floating_point() and tensor.ndim > 1)
            or path.suffix == ".npy"
        )
    }
    if not kept:
        raise NothingToQuantise(
            f"{source} holds no floating tensor named {only}",
            f"it holds {', '.join(list(found)[:5]) or 'nothing'}",
        )
    return kept


def _array(path: Path) -> Tensor:
    try:
        array: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"{path} can't be read: {error}", "save it with numpy.save, without objects"
        ) from error
    if array.dtype.kind != "f" or not array.ndim:
        raise UnreadableFile(
            f"{path} holds {array.dtype} of {array.ndim} dimensions", "save a floating array"
        )
    return torch.from_numpy(array)


def _of_model(source: str, text: str, tokens: int) -> dict[str, MixFP4Tensor | Tensor]:
    from separata_kit_llm import load, read_text

    from .evaluation import first_ids, model_tensors
    from .model import linear_layers

    model, tokenizer = load(source)
    if not text:
        return {name: layer.weight.detach() for name, layer in linear_layers(model)}
    return {**model_tensors(model, first_ids(tokenizer, read_text(text), tokens))}
