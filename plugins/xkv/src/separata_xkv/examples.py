"""Small inputs on which the conformance kit tries what xKV offers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, LlamaConfig

from separata.testing import EstimatorExample, KernelExample

from .analysis import CrossLayerCKA

LAYERS, HEADS, HEAD_DIM, LENGTH = 3, 2, 8, 40


def crosslayer_svd() -> KernelExample:
    """Three layers whose joint singular values halve one after the other, so that each vector is well defined."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        width = LAYERS * HEADS * HEAD_DIM
        left, _ = torch.linalg.qr(torch.randn(2, 2 * width, 8, generator=generator, dtype=torch.float64))
        right, _ = torch.linalg.qr(torch.randn(2, width, 8, generator=generator, dtype=torch.float64))
        states = (left * 0.5 ** torch.arange(8)) @ right.mT
        return torch.split(states.to(dtype), HEADS * HEAD_DIM, dim=-1), 4

    return KernelExample(
        inputs=inputs,
        empty=lambda dtype: ((torch.zeros(1, 0, 4, dtype=dtype),), 2),
        # Singular vectors turn by the rounding of the products over the gap of the singular values.
        tolerances={"float32": (1e-5, 1e-5)},
    )


def select_chunks() -> KernelExample:
    """Two sequences, four query heads on two key-value heads, ten chunks."""

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Tensor | int, ...]:
        queries = torch.randn(2, 4, HEAD_DIM, generator=generator, dtype=torch.float64).to(dtype)
        landmarks = torch.randn(2, 2, 10, HEAD_DIM, generator=generator, dtype=torch.float64).to(dtype)
        return queries, landmarks, 3

    def empty(dtype: torch.dtype) -> tuple[Tensor | int, ...]:
        return torch.zeros(1, 4, HEAD_DIM, dtype=dtype), torch.zeros(1, 2, 0, HEAD_DIM, dtype=dtype), 3

    return KernelExample(inputs=inputs, empty=empty)


def cross_layer_cka() -> EstimatorExample:
    """A cache of three layers that share a subspace, and caches that no model has filled."""
    config = LlamaConfig(
        hidden_size=HEADS * HEAD_DIM,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        vocab_size=16,
        intermediate_size=16,
        eos_token_id=None,
        bos_token_id=None,
    )

    def data(generator: torch.Generator) -> tuple[DynamicCache]:
        shared = torch.randn(1, HEADS, LENGTH, 4, generator=generator)
        cache = DynamicCache(config=config)
        for layer in range(LAYERS):
            keys, values = (shared @ torch.randn(4, HEAD_DIM, generator=generator) for _ in range(2))
            cache.update(keys, values, layer)
        return (cache,)

    return EstimatorExample(
        make=lambda: CrossLayerCKA(config, windows=(1, 2)),
        data=data,
        bad=(([],), (DynamicCache(config=config),)),
        expected_failures={
            "leaves-data-unchanged": "a cache of transformers equals only itself, never a copy of it"
        },
    )
