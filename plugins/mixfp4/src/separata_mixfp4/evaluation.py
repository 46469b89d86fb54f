"""What a real model makes of 4-bit numbers: the tensors it computes, and its perplexity with each method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from separata_kit_llm import Hook, Replace, patched, perplexity

from .config import SKIPPED
from .model import QuantizedLinear, linear_layers
from .quantizer import fake_quantize

EXACT = "exact"


@torch.no_grad()
def model_tensors(
    model: PreTrainedModel, input_ids: Tensor, *, inputs: Iterable[str] = ("*",)
) -> dict[str, Tensor]:
    """Keys and values of each layer, and inputs of its linear layers, on real text.

    Args:
        model: A causal decoder.
        input_ids: A ``1 x length`` tensor.
        inputs: Names or patterns of the linear layers whose inputs are kept; none for keys and values alone.

    Returns:
        By name, ``keys.3``, ``values.3``, ``model.layers.3.mlp.down_proj``: tensors of one row a token and head.
    """
    found: dict[str, Tensor] = {}
    patterns = tuple(inputs)
    names = {
        id(layer): name
        for name, layer in linear_layers(model, ())
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }

    def keep(module: nn.Module, args: tuple[Tensor, ...], _kwargs: dict[str, Any]) -> None:
        found[names[id(module)]] = args[0].flatten(0, -2)

    hooks = [Hook(lambda _name, module: id(module) in names, keep, when="before")] if names else []
    cache = DynamicCache(config=model.config)
    with patched(model, *hooks):
        model(input_ids=input_ids, cache=cache, use_cache=True)
    for number, layer in enumerate(cache.layers):
        states: Any = layer
        found[f"keys.{number}"] = states.keys.flatten(0, -2)
        found[f"values.{number}"] = states.values.flatten(0, -2)
    return found


def perplexities(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    methods: Iterable[str],
    *,
    weights: bool = True,
    activations: bool = True,
    tokens: int = 2048,
    window: int = 2048,
    skip: Iterable[str] = SKIPPED,
) -> Iterator[dict[str, Any]]:
    """Perplexity of a model as it is, and with each method in its linear layers.

    Args:
        model: A causal decoder; it is itself again afterwards.
        tokenizer: Its tokenizer.
        text: The text; its first ``tokens`` tokens are scored.
        methods: Names of methods.
        weights: Whether weights are quantised, to nearest.
        activations: Whether inputs of layers are quantised.
        tokens: Tokens that are scored.
        window: Tokens the model sees at a time; it moves by half of it.
        skip: Names or patterns of layers that stay as they are.

    Yields:
        One row a method, the first for ``exact``: ``method``, ``perplexity``, ``nll``, ``bits_per_byte``, ``tokens``.
    """
    passage = first_tokens(tokenizer, text, tokens)
    for method in (EXACT, *methods):
        with quantized(model, method, weights=weights, activations=activations, skip=skip):
            score = perplexity(model, tokenizer, passage, window=window, stride=max(window // 2, 1))
        yield {
            "method": method,
            "perplexity": score.perplexity,
            "nll": score.nll,
            "bits_per_byte": score.bits_per_byte,
            "tokens": score.tokens,
        }


@contextmanager
def quantized(
    model: nn.Module,
    method: str,
    *,
    weights: bool = True,
    activations: bool = True,
    skip: Iterable[str] = SKIPPED,
) -> Iterator[nn.Module]:
    """Quantise a model for the length of a block.

    Args:
        model: Any model with linear layers.
        method: A method, or ``exact``, which changes nothing.
        weights: Whether weights are quantised.
        activations: Whether inputs are.
        skip: Names or patterns of layers that stay as they are.
    """
    layers = {id(layer) for _, layer in linear_layers(model, skip)}
    if method == EXACT or not (weights or activations):
        yield model
        return

    def chosen(_name: str, module: nn.Module) -> bool:
        return id(module) in layers

    def packed(layer: nn.Module) -> nn.Module:
        assert isinstance(layer, nn.Linear)
        return QuantizedLinear.from_linear(layer, method=method, activations=activations)

    def rounded(_module: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> Any:
        return (fake_quantize(args[0], method=method), *args[1:]), kwargs

    patch = Replace(chosen, packed) if weights else Hook(chosen, rounded, when="before")
    with patched(model, patch):
        yield model


def first_tokens(tokenizer: PreTrainedTokenizerBase, text: str, tokens: int) -> str:
    """The beginning of a text that has so many tokens.

    Args:
        tokenizer: A tokenizer.
        text: The text.
        tokens: How many.
    """
    return str(tokenizer.decode(first_ids(tokenizer, text, tokens)[0], skip_special_tokens=True))


def first_ids(tokenizer: PreTrainedTokenizerBase, text: str, tokens: int) -> Tensor:
    """The first tokens of a text.

    Args:
        tokenizer: A tokenizer.
        text: The text.
        tokens: How many; fewer if the text ends before.

    Returns:
        A ``1 x tokens`` int64 tensor of ids.
    """
    # Forty characters a token are always enough to look at; a tokenizer is slow on a whole library.
    encoded: Any = tokenizer(text[: 40 * tokens], return_tensors="pt", verbose=False)
    ids: Tensor = encoded.input_ids[:, :tokens]
    return ids
