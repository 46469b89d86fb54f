"""A saved cache is the same cache again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from separata import artifacts
from separata.errors import ArtifactError
from separata_xkv import XKVCache, attention_of
from separata_xkv.errors import CacheMismatch

Draw = Callable[[int, int], Tensor]
Decode = Callable[..., Tensor]
Models = Callable[[str], PreTrainedModel]
TIGHT: dict[str, Any] = {"ratio": 3, "window": 2, "min_length": 32, "outlier_chunks": 1, "local_chunks": 1}


@pytest.mark.parametrize("mode", ["dense", "sr", "sr-offload"])
@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_it_goes_on_bit_for_bit(
    mode: str, kind: str, model_of: Models, tokens: Draw, decode: Decode, tmp_path: Path
) -> None:
    model, more = model_of(kind), tokens(2, 2)
    with attention_of(model):
        cache = XKVCache(model.config, mode=mode, **TIGHT)
        decode(model, cache, tokens(2, 70), tokens(2, 1))
        cache.save(tmp_path / "prompt")
        loaded = XKVCache.load(tmp_path / "prompt", model)
        assert loaded.settings == cache.settings
        # transformers' sliding windows keep a view of a longer storage; what is loaded has no more than it shows.
        assert loaded.nbytes() <= cache.nbytes()
        assert loaded.nbytes() == cache.nbytes() or kind == "gemma3"
        for ours, theirs in zip(cache.tensors(), loaded.tensors(), strict=True):
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours, theirs)
        found, expected = (decode(model, used, more[:, :1], more[:, 1:]) for used in (loaded, cache))
    assert torch.equal(found, expected)


def test_latents_are_saved_too(model_of: Models, tokens: Draw, decode: Decode, tmp_path: Path) -> None:
    model, more = model_of("deepseek"), tokens(2, 3)
    cache = XKVCache(model.config, ratio=3, window=2, min_length=32)
    decode(model, cache, tokens(2, 70), tokens(2, 3))
    loaded = XKVCache.load(cache.save(tmp_path / "prompt"), model.config)
    found, expected = (decode(model, used, more[:, :1], more[:, 1:]) for used in (loaded, cache))
    assert torch.equal(found, expected)


def test_a_prompt_is_read_once_for_several_continuations(
    llama: PreTrainedModel, tokens: Draw, tmp_path: Path
) -> None:
    prompt, question = tokens(1, 70), tokens(1, 6)
    whole = torch.cat([prompt, question], dim=1)
    cache = XKVCache(llama.config, **TIGHT)
    with torch.no_grad():
        llama(prompt, cache=cache)
    cache.save(tmp_path / "prompt")
    options: dict[str, Any] = {
        "max_new_tokens": 5,
        "do_sample": False,
        "attention_mask": torch.ones_like(whole),
    }
    expected = llama.generate(whole, cache=cache, **options)
    for ids in (whole, question):
        loaded = XKVCache.load(tmp_path / "prompt", llama)
        found = llama.generate(ids, cache=loaded, **options)
        assert torch.equal(found[:, ids.shape[1] :], expected[:, whole.shape[1] :])
        assert loaded.prompt_length == 70


def test_an_empty_cache_can_be_saved(llama: PreTrainedModel, tmp_path: Path) -> None:
    loaded = XKVCache.load(XKVCache(llama.config, **TIGHT).save(tmp_path / "empty"), llama)
    assert loaded.get_seq_length() == 0


def test_another_model_is_refused(
    llama: PreTrainedModel, model_of: Models, tokens: Draw, tmp_path: Path
) -> None:
    XKVCache(llama.config, **TIGHT).save(tmp_path / "prompt")
    with pytest.raises(CacheMismatch, match="was made with"):
        XKVCache.load(tmp_path / "prompt", model_of("qwen3"))


def test_another_kind_of_folder_is_refused(llama: PreTrainedModel, tmp_path: Path) -> None:
    artifacts.save(tmp_path / "other", slug="xkv", kind="study", tensors={}, config={})
    with pytest.raises(ArtifactError, match="holds a study of xkv"):
        XKVCache.load(tmp_path / "other", llama)


def test_a_damaged_folder_is_refused(llama: PreTrainedModel, tmp_path: Path) -> None:
    folder = XKVCache(llama.config, **TIGHT).save(tmp_path / "prompt")
    (folder / artifacts.TENSORS).write_bytes(b"damaged")
    with pytest.raises(ArtifactError, match="can't be read"):
        XKVCache.load(folder, llama)
