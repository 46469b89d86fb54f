"""Saved work without pickles: quantised weights as codes and scales, and a training from which to go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from separata import artifacts

from .conversion import put, quantised
from .errors import BadCheckpoint
from .optimizers import GENERATORS, ErrorCompensating
from .parameter import QuantizedParameter
from .quantizers import quantizer

SLUG = "eco"


def save_weights(model: nn.Module, folder: Path | str, *, config: Mapping[str, Any] | None = None) -> Path:
    """Write a model's weights, the quantised ones as codes and scales, in one safetensors file.

    Args:
        model: A model that ``convert_`` changed.
        folder: Written whole or not at all.
        config: Settings to write down beside it, as plain JSON values.
    """
    return artifacts.save(
        folder,
        slug=SLUG,
        kind="weights",
        tensors=_tensors(model),
        config=dict(config or {}),
        extra={"quantisers": _quantisers(model)},
    )


def load_weights(model: nn.Module, folder: Path | str) -> nn.Module:
    """Read what ``save_weights`` wrote into a model of the same architecture, quantised or not.

    Args:
        model: Changed in place: its weights become those of the folder, quantised as they were.
        folder: What was written.

    Raises:
        BadCheckpoint: If the folder's weights are not those of this architecture.
    """
    artifact = artifacts.load(folder, slug=SLUG, kind="weights")
    _fill(model, artifact.tensors, artifact.extra["quantisers"], str(folder))
    return model


def save_checkpoint(
    model: nn.Module,
    optimizer: ErrorCompensating,
    folder: Path | str,
    *,
    step: int,
    config: Mapping[str, Any],
) -> Path:
    """Write weights, moments, options and draws, so that a training goes on bit for bit.

    Args:
        model: The model.
        optimizer: Its optimizer.
        folder: Written whole or not at all; an earlier checkpoint there is replaced.
        step: Steps that were taken.
        config: Settings of the training, as plain JSON values.
    """
    saved = optimizer.state_dict()
    state: dict[str, Tensor] = {}
    plain: dict[str, Any] = {}
    for index, entries in saved["state"].items():
        for name, value in entries.items():
            (state if isinstance(value, Tensor) else plain)[f"{index}.{name}"] = value
    return artifacts.save(
        folder,
        slug=SLUG,
        kind="checkpoint",
        tensors={
            **{f"model.{name}": tensor for name, tensor in _tensors(model).items()},
            **{f"optimizer.{name}": tensor for name, tensor in state.items()},
            **{f"draws.{device}": tensor for device, tensor in saved[GENERATORS].items()},
        },
        config=dict(config),
        extra={
            "quantisers": _quantisers(model),
            "groups": saved["param_groups"],
            "state": plain,
            "step": step,
        },
    )


def load_checkpoint(model: nn.Module, optimizer: ErrorCompensating, folder: Path | str) -> int:
    """Go on from what ``save_checkpoint`` wrote.

    Args:
        model: A model of the same architecture, converted in the same way; changed in place.
        optimizer: A new optimizer of its parameters; changed in place.
        folder: What was written.

    Returns:
        The steps that were taken.

    Raises:
        BadCheckpoint: If the folder is of another model.
    """
    artifact = artifacts.load(folder, slug=SLUG, kind="checkpoint")
    if _quantisers(model) != artifact.extra["quantisers"]:
        raise BadCheckpoint(
            f"{folder} was trained with other quantised weights", "convert the model as it was in that run"
        )
    _fill(model, _under("model.", artifact.tensors), artifact.extra["quantisers"], str(folder))
    state: dict[int, dict[str, Any]] = {}
    for entries in (_under("optimizer.", artifact.tensors), artifact.extra["state"]):
        for key, value in entries.items():
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
    groups = [{**group, **_tuples(group)} for group in artifact.extra["groups"]]
    draws = _under("draws.", artifact.tensors)
    optimizer.load_state_dict({"state": state, "param_groups": groups, GENERATORS: draws})
    return int(artifact.extra["step"])


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """The state dict, tied weights once."""
    seen: set[int] = set()
    kept = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            kept[name] = tensor.detach()
    return kept


def _quantisers(model: nn.Module) -> dict[str, str]:
    return {name: weight.quantizer.label for name, weight in quantised(model).items()}


def _fill(model: nn.Module, tensors: Mapping[str, Tensor], labels: Mapping[str, str], source: str) -> None:
    for name, label in labels.items():
        module_name, _, attribute = name.rpartition(".")
        try:
            module = model.get_submodule(module_name)
            weight: Any = module._parameters[attribute]
        except (AttributeError, KeyError) as error:
            raise BadCheckpoint(f"{source} has a weight {name}, and the model has none", _REMEDY) from error
        if not isinstance(weight, QuantizedParameter):
            parts = {
                key.removeprefix(f"{name}."): part.to(weight.device)
                for key, part in tensors.items()
                if key.startswith(f"{name}.")
            }
            made = QuantizedParameter(parts, weight.shape, quantizer(label), weight.dtype)
            put(module, attribute, nn.Parameter(made, weight.requires_grad))  # type: ignore[arg-type]
    try:
        missing, unexpected = model.load_state_dict(dict(tensors), strict=False)
    except RuntimeError as error:
        raise BadCheckpoint(f"{source} does not fit the model: {error}", _REMEDY) from error
    tied = {name for name, _ in model.named_parameters(remove_duplicate=False)} - {
        name for name, _ in model.named_parameters()
    }
    lost = [name for name in missing if name not in tied]
    if lost or unexpected:
        raise BadCheckpoint(
            f"{source} does not fit the model: {', '.join([*lost, *unexpected][:4])}", _REMEDY
        )


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _tuples(group: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON has turned into lists and torch expects as a tuple."""
    return {"betas": tuple(group["betas"])} if "betas" in group else {}


_REMEDY = "build the model with the configuration that the folder was trained with"
