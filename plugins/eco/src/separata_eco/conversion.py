"""Turn a model's weights into quantised ones, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from separata_mixfp4.formats import Rounding
from separata_mixfp4.scaling import Granularity

from .errors import InvalidSetting, NothingToQuantise, ShapeMismatch, SharedWeight
from .parameter import QuantizedParameter
from .quantizers import Quantizer
from .quantizers import quantizer as quantizer_named

SKIPPED = ("lm_head",)
Mismatch: TypeAlias = Literal["error", "row", "skip"]
M = TypeVar("M", bound=nn.Module)


def convert_(
    model: M,
    *,
    quantizer: str = "fp8_e4m3",
    granularity: Granularity | str | None = None,
    scale: Literal["dynamic", "frozen"] = "dynamic",
    skip: Iterable[str] = SKIPPED,
    mismatch: Mismatch = "error",
    rounding: Rounding = "nearest_even",
    generator: torch.Generator | None = None,
) -> M:
    """Replace the weights of linear layers, and stacked weights of experts, by their codes and scales.

    Everything else stays as it is. Make the optimizer afterwards.

    Args:
        model: Any module; it is changed in place.
        quantizer: ``fp8_e4m3``, ``int8``, ``int4``, ``mixfp4`` or ``nvfp4``.
        granularity: ``tensor``, ``row`` or the size of a group; the format's usual one if not given.
        scale: ``dynamic`` scales follow the weights at every step; ``frozen`` ones stay as they are now.
        skip: Names of modules, or patterns with ``*``, that stay as they are.
        mismatch: What becomes of weights whose rows the groups don't divide: an ``error``, one scale a ``row``, or
            ``skip``.
        rounding: Of this conversion.
        generator: Draws for ``stochastic``.

    Returns:
        The model.

    Raises:
        InvalidSetting: If an option is unknown.
        NothingToQuantise: If no weight is left to convert.
        ShapeMismatch: If the groups don't divide a row.
        SharedWeight: If a weight is also used by a module that is not converted, such as a tied embedding.
    """
    if scale not in ("dynamic", "frozen") or mismatch not in ("error", "row", "skip"):
        raise InvalidSetting(
            f"scale is {scale!r} and mismatch is {mismatch!r}",
            "scale is dynamic or frozen; mismatch is error, row or skip",
        )
    chosen = quantizer_named(quantizer, granularity, frozen=scale == "frozen")
    places = _places(model, tuple(skip))
    _refuse_shared(model, places)
    # All shapes are checked before any weight is replaced: one that doesn't fit leaves the model as it was.
    fitting = {id(weight): _fitting(chosen, weight.shape, name, mismatch) for name, _, _, weight in places}
    made: dict[int, QuantizedParameter] = {}
    for _, module, attribute, weight in places:
        form = fitting[id(weight)]
        if form is None:
            continue
        if id(weight) not in made:
            made[id(weight)] = QuantizedParameter.from_dense(weight, form, rounding, generator=generator)
            made[id(weight)].requires_grad_(weight.requires_grad)
        put(module, attribute, made[id(weight)])
    if not made:
        raise NothingToQuantise(
            f"{type(model).__name__} has no weight of a linear layer outside {', '.join(skip) or 'nothing'}",
            "give a model with linear layers, or skip fewer of them",
        )
    return model


def dequantize_(model: M, dtype: torch.dtype | None = None) -> M:
    """Replace quantised weights by plain parameters, in place: for export, or to go on with another optimizer.

    Args:
        model: A model that ``convert_`` changed.
        dtype: Of the weights; that in which the model uses them if not given.
    """
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for attribute, weight in list(module._parameters.items()):
            if isinstance(weight, QuantizedParameter):
                if id(weight) not in made:
                    made[id(weight)] = nn.Parameter(weight.dequantize(dtype), weight.requires_grad)
                module._parameters[attribute] = made[id(weight)]
    return model


def quantised(model: nn.Module) -> dict[str, QuantizedParameter]:
    """The quantised weights of a model by name."""
    return {
        name: weight for name, weight in model.named_parameters() if isinstance(weight, QuantizedParameter)
    }


def put(module: nn.Module, attribute: str, weight: QuantizedParameter) -> None:
    """Make a quantised weight the module's own, and its state dict one of plain tensors."""
    module._parameters[attribute] = weight  # type: ignore[assignment]
    if _split not in module._state_dict_hooks.values():
        module.register_state_dict_post_hook(_split)  # type: ignore[no-untyped-call]
        module.register_load_state_dict_pre_hook(_join)  # type: ignore[no-untyped-call]


def _split(module: nn.Module, state_dict: dict[str, Any], prefix: str, _metadata: Any) -> None:
    """Save ``weight.codes`` and ``weight.scales`` instead of ``weight``: any file format takes them."""
    for attribute in _own(module):
        weight = state_dict.pop(prefix + attribute)
        for name, part in weight.parts.items():
            state_dict[f"{prefix}{attribute}.{name}"] = part


def _join(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Undo ``_split`` before the module takes its weights."""
    for attribute, weight in _own(module).items():
        names = {name: f"{prefix}{attribute}.{name}" for name in weight.parts}
        if all(name in state_dict for name in names.values()):
            parts = {name: state_dict.pop(key) for name, key in names.items()}
            state_dict[prefix + attribute] = weight._like(parts)


def _own(module: nn.Module) -> dict[str, QuantizedParameter]:
    parameters: dict[str, Any] = module._parameters
    return {name: weight for name, weight in parameters.items() if isinstance(weight, QuantizedParameter)}


def _places(model: nn.Module, skip: tuple[str, ...]) -> list[tuple[str, nn.Module, str, Tensor]]:
    """Name, module, attribute and weight of everything that is converted."""
    return [
        (f"{name}.{attribute}" if name else attribute, module, attribute, weight)
        for name, module in model.named_modules()
        if not any(fnmatchcase(name, pattern) for pattern in skip)
        for attribute, weight in _candidates(module)
    ]


def _candidates(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for attribute, weight in module._parameters.items():
        if weight is None or isinstance(weight, QuantizedParameter) or not weight.is_floating_point():
            continue
        linear = isinstance(module, nn.Linear) and attribute == "weight"
        # Experts of transformers are modules of their own class with one stacked weight of three dimensions.
        experts = weight.ndim == 3 and "expert" in type(module).__name__.lower()
        if linear or experts:
            yield attribute, weight


def _refuse_shared(model: nn.Module, places: list[tuple[str, nn.Module, str, Tensor]]) -> None:
    converted = {(id(module), attribute) for _, module, attribute, _ in places}
    names = {id(weight): name for name, _, _, weight in places}
    for name, module in model.named_modules():
        for attribute, weight in module._parameters.items():
            if id(weight) in names and (id(module), attribute) not in converted:
                raise SharedWeight(
                    f"{names[id(weight)]} is also {name}.{attribute}, which is not quantised",
                    "untie them first, or keep the layer out with skip",
                )


def _fitting(chosen: Quantizer, shape: torch.Size, name: str, mismatch: Mismatch) -> Quantizer | None:
    """The quantiser for a shape: the chosen one, or what ``mismatch`` says."""
    try:
        chosen.check(shape, name)
    except ShapeMismatch:
        if mismatch == "skip":
            return None
        if mismatch == "error":
            raise
        kind, *_, last = chosen.label.split(":")
        by_row = quantizer_named(kind, "row", frozen=last == "frozen")
        by_row.check(shape, name)
        return by_row
    return chosen
