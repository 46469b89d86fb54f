"""The study measures what was put into the caches."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from separata_xkv import CrossLayerCKA
from separata_xkv.errors import CacheMismatch, InvalidSetting
from separata_xkv.rope import rotation_of

Draw = Callable[[int, int], Tensor]
Filled = Callable[[PreTrainedModel, Tensor], DynamicCache]
LENGTH = 120


@pytest.fixture
def planted(llama: PreTrainedModel, generator: torch.Generator) -> DynamicCache:
    """Layers 0 to 2 share a subspace of three dimensions before RoPE, 3 and 4 another; no token agrees."""
    rotation = rotation_of(llama.config, 8)
    tables = rotation.tables(torch.arange(LENGTH)[None], LENGTH - 1)
    shared = [torch.randn(1, LENGTH, 3, generator=generator) for _ in range(2)]
    cache = DynamicCache(config=llama.config)
    for layer in range(5):
        source = shared[layer > 2]
        keys, values = (
            (source @ torch.linalg.qr(torch.randn(16, 3, generator=generator))[0].T)
            .view(1, LENGTH, 2, 8)
            .transpose(1, 2)
            for _ in range(2)
        )
        cache.update(rotation.rotate(keys, tables), values, layer)
    return cache


def test_planted_subspaces_are_found(llama: PreTrainedModel, planted: DynamicCache) -> None:
    study = CrossLayerCKA(llama.config, threshold=0.9, windows=(1, 2, 3), energy=0.999).fit(planted)
    alike = np.array([[(i > 2) == (j > 2) for j in range(5)] for i in range(5)])
    for matrix in (study.key_cka_, study.value_cka_):
        # Orthonormal maps keep the geometry; independent sources of 120 tokens have a CKA of some hundredths.
        assert matrix[alike].min() == pytest.approx(1, abs=1e-4)
        assert matrix[~alike].max() < 0.2
    assert study.groups_ == [(0, 1, 2), (3, 4)]
    assert study.ranks_ == [(3, 3), (3, 3)]
    assert study.key_rank_.tolist() == study.value_rank_.tolist() == [3] * 5
    assert (study.layers_, study.tokens_) == ([0, 1, 2, 3, 4], LENGTH)


def test_layers_together_lose_less_than_apart_at_equal_bytes(
    llama: PreTrainedModel, planted: DynamicCache
) -> None:
    study = CrossLayerCKA(llama.config, windows=(1, 3), ratios=(2.0, 16.0)).fit(planted)
    # At 16x a layer alone gets rank 1 of 3, and three layers together rank 2.
    assert study.value_error_[1, 1] < 0.75 * study.value_error_[0, 1]
    assert (np.diff(study.key_error_, axis=1) >= 0).all()


def test_the_error_is_that_of_the_cache_it_predicts(
    llama: PreTrainedModel, tokens: Draw, filled: Filled
) -> None:
    from separata_xkv import XKVCache

    exact = filled(llama, tokens(1, LENGTH))
    study = CrossLayerCKA(llama.config, windows=(2,), ratios=(4.0,)).fit(exact)
    cache = XKVCache.from_cache(exact, llama.config, window=2, ratio=4, min_length=32)
    lost = norm = 0.0
    for ours, theirs in zip(cache.compressor.layers, exact.layers, strict=True):
        _, values = ours.states(cache.compressor.tables(ours))
        lost += float((values - theirs.values).square().sum())
        norm += float(theirs.values.square().sum())
    assert study.value_error_[0, 0] == pytest.approx(lost / norm, rel=1e-3)


def test_caches_are_left_as_they_are(llama: PreTrainedModel, planted: DynamicCache) -> None:
    before = copy.deepcopy(planted)
    CrossLayerCKA(llama.config, windows=(1,)).fit(planted)
    for ours, theirs in zip(planted.layers, before.layers, strict=True):
        assert torch.equal(ours.keys, theirs.keys)
        assert torch.equal(ours.values, theirs.values)


def test_several_caches_count_as_one_text(llama: PreTrainedModel, tokens: Draw, filled: Filled) -> None:
    caches = [filled(llama, tokens(1, 40)), filled(llama, tokens(2, 30))]
    study = CrossLayerCKA(llama.config, windows=(1,)).fit(caches)
    assert study.tokens_ == 100
    assert CrossLayerCKA(llama.config, windows=(1,), max_tokens=20).fit(caches).tokens_ == 40


def test_everything_learned_can_be_written_down(llama: PreTrainedModel, planted: DynamicCache) -> None:
    study = CrossLayerCKA(llama.config, windows=(1, 2)).fit(planted)
    plain = json.loads(json.dumps(study.as_dict()))
    assert plain["tokens"] == LENGTH
    assert len(plain["key_cka"]) == 5


def test_unknown_parameters_and_shares_are_refused(llama: PreTrainedModel, planted: DynamicCache) -> None:
    with pytest.raises(InvalidSetting, match="no parameter depth"):
        CrossLayerCKA(llama.config).set_params(depth=3)
    with pytest.raises(InvalidSetting, match="energy is 95"):
        CrossLayerCKA(llama.config, energy=95).fit(planted)


def test_caches_without_states_are_refused(llama: PreTrainedModel) -> None:
    with pytest.raises(CacheMismatch, match="no caches"):
        CrossLayerCKA(llama.config).fit([])
    with pytest.raises(CacheMismatch, match="no keys of layer 0"):
        CrossLayerCKA(llama.config).fit(DynamicCache(config=llama.config))
