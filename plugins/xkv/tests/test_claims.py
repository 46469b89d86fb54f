from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata.registry import load_object
from separata_xkv import XKVCache, _plugin, claims

Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]
Tokens = Callable[[int, int], Tensor]


def compressed(exact: DynamicCache, model: PreTrainedModel, window: int) -> XKVCache:
    return XKVCache.from_cache(exact, model, ratio=2, window=window, min_length=16)


@pytest.mark.parametrize("claim", list(_plugin.separata_claims()), ids=lambda claim: claim.name)
def test_every_claim_has_its_proof(claim: object) -> None:
    assert load_object(claim.proof, "xkv").__doc__


@pytest.mark.parametrize(
    "benchmark", list(_plugin.separata_benchmarks()), ids=lambda benchmark: benchmark.name
)
def test_every_benchmark_has_its_races(benchmark: object) -> None:
    assert load_object(benchmark.run, "xkv").__doc__


@pytest.mark.parametrize("window", [1, 2, 5])
@torch.no_grad()
def test_three_ways_to_count_bytes_agree(
    llama: PreTrainedModel, filled: Filled, tokens: Tokens, window: int
) -> None:
    cache = compressed(filled(llama, tokens(1, 60)), llama, window)
    llama(tokens(1, 5), cache=cache)
    assert cache.nbytes() == claims._reachable_bytes(cache) == claims._formula(llama, cache, 60, 5)


def test_a_hidden_exact_copy_would_be_counted(llama: PreTrainedModel, filled: Filled, tokens: Tokens) -> None:
    exact = filled(llama, tokens(1, 60))
    cache = compressed(exact, llama, 2)
    before = claims._reachable_bytes(cache)
    cache.compressor.hidden = {"keys": [exact.layers[0].keys]}
    assert claims._reachable_bytes(cache) == before + exact.layers[0].keys.nbytes


def test_means_are_over_texts() -> None:
    rows = [{"text": text, "cache": "a", "kl": kl} for text, kl in zip(claims.TEXTS, (1.0, 3.0), strict=True)]
    assert claims._mean_of(rows, "kl") == {"a": 2.0}
