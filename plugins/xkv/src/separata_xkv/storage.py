"""Compressed caches on disk, so that a long prompt is processed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers.cache_utils import DummyLayer, DynamicSlidingWindowLayer

from separata import artifacts
from separata.config import dump, resolve

from .cache import XKVCache
from .config import XKVConfig
from .crosslayer_svd import Factors
from .errors import CacheMismatch
from .group import Group
from .layer import XKVLayer
from .selective import Selective

SLUG, KIND = "xkv", "cache"
IDENTITY = ("model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads")


def save(cache: XKVCache, folder: Path) -> Path:
    """Write a cache to a folder.

    Args:
        cache: The cache.
        folder: It is written whole or not at all.

    Raises:
        CacheMismatch: If it has layers of a kind that can't be saved.
    """
    tensors = dict(_named(cache))
    extra = {
        "model": _identity(cache),
        "groups": [
            {"layers": group.layers, "heads": group.heads, "horizon": group.horizon}
            for group in cache.compressor.groups
        ],
        "seen": [getattr(layer, "cumulative_length", 0) for layer in cache.layers],
    }
    return artifacts.save(
        folder, slug=SLUG, kind=KIND, tensors=tensors, config=dump(cache.settings), extra=extra
    )


def load(folder: Path, model_or_config: Any, device: str) -> XKVCache:
    """Read a cache that ``save`` wrote.

    Args:
        folder: The folder.
        model_or_config: The model that it was made with, or its config.
        device: Where the tensors go.

    Raises:
        CacheMismatch: If it was made with another model.
        ArtifactError: If the folder is missing, damaged or holds something else.
    """
    saved = artifacts.load(folder, slug=SLUG, kind=KIND, device=device)
    cache = XKVCache(model_or_config, resolve(XKVConfig, overrides=saved.config).value)
    ours = _identity(cache)
    if saved.extra["model"] != ours:
        raise CacheMismatch(
            f"{folder} was made with {saved.extra['model']}", f"this model is {ours}; load that one"
        )
    cache.compressor.timeline.positions = saved.tensors.get("positions")
    for number, described in enumerate(saved.extra["groups"]):
        _join(cache, described, _under(saved.tensors, f"groups.{number}."))
    for index, layer in enumerate(cache.layers):
        _fill(layer, _under(saved.tensors, f"layers.{index}."), saved.extra["seen"][index])
    return cache


def _identity(cache: XKVCache) -> dict[str, Any]:
    config = cache.compressor.anatomy.config
    return {name: getattr(config, name, None) for name in IDENTITY}


def _named(cache: XKVCache) -> Iterator[tuple[str, Tensor]]:
    positions = cache.compressor.timeline.positions
    if positions is not None:
        yield "positions", positions
    for number, group in enumerate(cache.compressor.groups):
        for side, factors in (("keys", group.keys), ("values", group.values)):
            if factors is not None:
                yield f"groups.{number}.{side}.rows", factors.rows
                yield from (
                    (f"groups.{number}.{side}.{slot}", basis) for slot, basis in enumerate(factors.bases)
                )
    for index, layer in enumerate(cache.layers):
        if not isinstance(layer, XKVLayer | DynamicSlidingWindowLayer | DummyLayer):
            raise CacheMismatch(
                f"layer {index} is a {type(layer).__name__}",
                "caches with full attention and sliding windows can be saved; process the prompt again for others",
            )
        for name, tensor in _layer_tensors(layer).items():
            yield f"layers.{index}.{name}", tensor


def _layer_tensors(layer: Any) -> dict[str, Tensor]:
    found = {name: getattr(layer, name, None) for name in ("keys", "values", "offloaded")}
    selective = getattr(layer, "selective", None)
    if selective is not None:
        found.update({f"selective.{name}": tensor for name, tensor in selective.named().items()})
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _join(cache: XKVCache, described: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    def factors(side: str) -> Factors:
        bases = tuple(tensors[f"{side}.{slot}"] for slot in range(len(described["layers"])))
        return Factors(tensors[f"{side}.rows"], bases)

    rotations = [cache.compressor.anatomy.rotation_of(index) for index in described["layers"]]
    values = factors("values") if "values.rows" in tensors else None
    group = Group(factors("keys"), values, rotations=rotations, **described)
    cache.compressor.groups.append(group)
    for slot, index in enumerate(group.layers):
        layer: Any = cache.layers[index]
        layer.group, layer.slot = group, slot


def _fill(layer: Any, tensors: Mapping[str, Tensor], seen: int) -> None:
    if "keys" not in tensors:
        return
    layer.lazy_initialization(tensors["keys"], tensors["values"])
    layer.keys, layer.values = tensors["keys"], tensors["values"]
    if not isinstance(layer, XKVLayer):
        layer.cumulative_length = seen
        return
    layer.offloaded = tensors["offloaded"].cpu() if "offloaded" in tensors else None
    selective = _under(tensors, "selective.")
    if selective:
        chunk = layer.compressor.settings.chunk
        layer.selective = Selective(**selective, length=layer.prompt_length, chunk=chunk)
