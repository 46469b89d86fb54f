from __future__ import annotations

import pytest
import torch

from separata.claims import Trial
from separata.registry import Registry
from separata_xkv import XKVCache
from separata_xkv.anatomy import ATTENTION
from separata_xkv.benchmarks import attention_only, decoding, filled, selective_step


def test_the_skeleton_has_smollm2s_attention() -> None:
    model = attention_only()
    attention = model.model.layers[0].self_attn
    assert attention.q_proj.weight.shape == (576, 576)
    assert attention.k_proj.weight.shape == (192, 576)
    assert model.config._attn_implementation == ATTENTION


@pytest.mark.parametrize("settings", [{}, {"mode": "sr", "budget": 64}])
def test_a_step_is_taken_back(settings: dict[str, object], generator: torch.Generator) -> None:
    model = attention_only()
    exact = filled(model, 320, generator)
    cache = XKVCache.from_cache(exact, model, ratio=4, window=3, **settings)
    before = cache.nbytes()
    step = decoding(model, cache)
    step()
    step()
    assert cache.get_seq_length() == 320
    assert cache.nbytes() == before
    assert exact.get_seq_length() == 320


def test_races_grow_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separata_xkv.benchmarks.STEP_LENGTHS", (300, 600))
    races = list(selective_step(Trial("xkv", Registry(()))))
    assert [race.size for race in races] == [300, 600]
    for race in races:
        race.ours()
        race.peer()
