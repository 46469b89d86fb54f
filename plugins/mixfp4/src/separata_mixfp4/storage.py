"""Packed tensors in safetensors, named as compressed-tensors names them, and whole models.

A layer's weight is ``NAME.weight_packed`` (uint8), ``NAME.weight_scale`` (float8_e4m3fn; a negative one is a block on
the uniform grid) and ``NAME.weight_global_scale`` (float32). With plain NVFP4 the three are what compressed-tensors'
``nvfp4-pack-quantized`` has, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from separata.files import atomic_file, atomic_folder

from .errors import AmbiguousScale, UnreadableFile
from .model import QuantizedLinear
from .tensor import UNIFORM_BIT, MixFP4Tensor

FORMAT, PLAIN = "mixfp4-pack-quantized", "nvfp4-pack-quantized"
PARTS = ("weight_packed", "weight_scale", "weight_global_scale")


def save_tensors(path: Path | str, tensors: Mapping[str, MixFP4Tensor | Tensor]) -> None:
    """Write stored and ordinary tensors to one safetensors file.

    Args:
        path: The file; it appears whole or not at all.
        tensors: By name: a stored one becomes three entries.
    """
    flat: dict[str, Tensor] = {}
    shapes: dict[str, list[int]] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, MixFP4Tensor):
            flat.update(zip([f"{name}.{part}" for part in PARTS], _entries(tensor), strict=True))
            shapes[name] = [*tensor.shape, tensor.group]
        else:
            flat[name] = tensor.detach().contiguous()
    metadata = {"format": "pt", "quantization_format": FORMAT, "shapes": json.dumps(shapes)}
    with atomic_file(path) as partial:
        save_file(flat, partial, metadata)


def load_tensors(path: Path | str) -> dict[str, MixFP4Tensor | Tensor]:
    """Read a safetensors file that ``save_tensors``, ``save_model`` or compressed-tensors wrote.

    Args:
        path: The file. If a config.json beside it names a quantisation format, or the file itself does, it counts.

    Raises:
        UnreadableFile: If it is no safetensors file, or parts of a tensor are missing.
        AmbiguousScale: If it claims to be NVFP4 and has negative scales.
    """
    path = Path(path)
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (SafetensorError, OSError) as error:
        raise UnreadableFile(f"{path} can't be read: {error}", "name a .safetensors file") from error
    claimed = metadata.get("quantization_format") or _quantisation_config(path.parent).get("format", "")
    shapes = json.loads(metadata.get("shapes", "{}"))
    found: dict[str, MixFP4Tensor | Tensor] = {}
    for name in [name.removesuffix(f".{PARTS[0]}") for name in flat if name.endswith(f".{PARTS[0]}")]:
        missing = [part for part in PARTS if f"{name}.{part}" not in flat]
        if missing:
            raise UnreadableFile(f"{path}: {name} has no {', '.join(missing)}", "write all three parts")
        packed, scale, global_scale = (flat.pop(f"{name}.{part}") for part in PARTS)
        found[name] = _stored(name, packed, scale, global_scale, shapes.get(name), claimed)
    return {**flat, **found}


def save_model(model: PreTrainedModel, folder: Path | str, tokenizer: Any = None) -> None:
    """Write a model that ``quantize_model`` changed: model.safetensors, config.json, the tokenizer's files.

    Args:
        model: The model; the settings of its quantised layers are those of the first.
        folder: It appears whole or not at all.
        tokenizer: Written beside it, if given.
    """
    layers = _quantised(model)
    if not layers:
        raise UnreadableFile("the model has no quantised layer", "call quantize_model(model) first")
    inside = tuple(f"{name}." for name in layers)
    tensors: dict[str, MixFP4Tensor | Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        # A tied tensor is written once; loading ties it again.
        if not name.startswith(inside) and tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            tensors[name] = tensor
    for name, layer in layers.items():
        tensors[name] = layer.stored
        if layer.bias is not None:
            tensors[f"{name}.bias"] = layer.bias
    settings = next(iter(layers.values()))
    config = model.config.to_dict() | {
        "quantization_config": {
            "quant_method": "mixfp4",
            "format": FORMAT,
            "input_method": settings.method,
            "per_row": settings.per_row,
            "rotation": settings.rotation,
            "seed": settings.seed,
        }
    }
    with atomic_folder(folder) as partial:
        save_tensors(partial / "model.safetensors", tensors)
        (partial / "config.json").write_text(json.dumps(config, indent=2, default=str) + "\n", "utf-8")
        if tokenizer is not None:
            tokenizer.save_pretrained(partial)


def load_model(folder: Path | str) -> PreTrainedModel:
    """Load a model that ``save_model`` wrote, in evaluation mode, on the CPU.

    Args:
        folder: The folder.

    Raises:
        UnreadableFile: If the folder holds no such model, or tensors are missing.
    """
    folder = Path(folder)
    settings = _quantisation_config(folder)
    if settings.get("quant_method") != "mixfp4":
        raise UnreadableFile(f"{folder} holds no model that mixfp4 saved", "quantise one with save_model")
    config: Any = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    build: Any = AutoModelForCausalLM.from_config
    model: Any = build(config)
    tensors = load_tensors(folder / "model.safetensors")
    dense = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
    for name, stored in tensors.items():
        if isinstance(stored, MixFP4Tensor):
            layer = QuantizedLinear(
                stored,
                dense.pop(f"{name}.bias", None),
                method=settings["input_method"],
                per_row=settings["per_row"],
                rotation=settings["rotation"],
                seed=settings["seed"],
            )
            model.set_submodule(name, layer)
    result = model.load_state_dict(dense, strict=False)
    model.tie_weights()
    inside = tuple(f"{name}." for name in _quantised(model))
    tied = tuple(getattr(model, "_tied_weights_keys", None) or ())
    missing = [name for name in result.missing_keys if not name.startswith(inside) and name not in tied]
    if missing or result.unexpected_keys:
        raise UnreadableFile(
            f"{folder}: missing {missing[:3]}, unexpected {result.unexpected_keys[:3]}",
            "the tensors do not belong to this config.json: write the folder again",
        )
    loaded: PreTrainedModel = model.train(False)
    return loaded


def _entries(tensor: MixFP4Tensor) -> tuple[Tensor, Tensor, Tensor]:
    scale = tensor.scales.contiguous().view(torch.float8_e4m3fn)
    global_scale = tensor.global_scale
    return (
        tensor.codes.contiguous(),
        scale,
        global_scale.reshape(1) if not global_scale.ndim else global_scale,
    )


def _stored(
    name: str, packed: Tensor, scale: Tensor, global_scale: Tensor, shape: list[int] | None, claimed: str
) -> MixFP4Tensor:
    scales = scale.view(torch.uint8)
    if claimed == PLAIN and bool((scales >= UNIFORM_BIT).any()):
        raise AmbiguousScale(
            f"{name} has {int((scales >= UNIFORM_BIT).sum())} negative scales, but its file says {PLAIN}",
            f"if it is MixFP4, let it say {FORMAT}",
        )
    *size, group = shape or [
        *packed.shape[:-1],
        2 * packed.shape[-1],
        2 * packed.shape[-1] // scale.shape[-1],
    ]
    whole = global_scale.float().reshape(()) if global_scale.numel() == 1 else global_scale.float()
    return MixFP4Tensor(packed, scales, whole, torch.Size(size), group)


def _quantised(model: nn.Module) -> dict[str, QuantizedLinear]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, QuantizedLinear)}


def _quantisation_config(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "config.json").read_text("utf-8")).get("quantization_config") or {}
    except (OSError, ValueError):
        return {}
    return dict(found)
