from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from transformers import DynamicCache

from separata_oea.steps import padding_of, step_of


def cache_of(tokens: int) -> DynamicCache:
    cache = DynamicCache()
    if tokens:
        cache.update(torch.zeros(2, 1, tokens, 4), torch.zeros(2, 1, tokens, 4), 0)
    return cache


def arguments(new: int, cached: int | None, **others: Any) -> dict[str, Any]:
    cache = None if cached is None else cache_of(cached)
    return {"input_ids": torch.ones(2, new, dtype=torch.int64), "cache": cache, **others}


@pytest.mark.parametrize(
    ("new", "cached", "positions", "decodes"),
    [
        (1, 5, 1, True),
        (1, 0, 1, False),
        (1, None, 1, False),
        (3, 5, 1, False),
        (3, 5, 3, True),
        (4, 5, 3, False),
    ],
)
def test_one_new_token_behind_others_decodes(
    new: int, cached: int | None, positions: int, decodes: bool
) -> None:
    assert (step_of(arguments(new, cached), positions=positions) is not None) == decodes


def test_embeddings_are_tokens_too() -> None:
    found = {"inputs_embeds": torch.zeros(2, 1, 8), "cache": cache_of(5)}
    assert step_of(found) is not None
    assert step_of({"cache": cache_of(5)}) is None


def test_padding_is_not_live_by_mask_or_token() -> None:
    mask = torch.ones(2, 6, dtype=torch.int64)
    mask[0, -1] = 0
    step = step_of(arguments(1, 5, attention_mask=mask))
    assert step is not None
    assert step.active is not None
    assert step.active.tolist() == [False, True]
    ended = arguments(1, 5)
    ended["input_ids"] = torch.tensor([[9], [7]])
    step = step_of(ended, padding=9)
    assert step is not None
    assert step.active is not None
    assert step.active.tolist() == [False, True]


def test_a_packed_batch_parts_into_prompts_steps_and_padding() -> None:
    packed = {
        "input_ids": torch.ones(1, 8, dtype=torch.int64),
        "cu_seq_lens_q": torch.tensor([0, 1, 4, 5, 6]),
    }
    step = step_of(packed)
    assert step is not None
    assert step.decoding is not None
    assert step.active is not None
    assert step.decoding.tolist() == [True, False, False, False, True, True, False, False]
    assert step.active.tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize(
    ("generation", "config", "token"),
    [
        ({"pad_token_id": 3, "eos_token_id": 4}, {}, 3),
        ({"pad_token_id": None, "eos_token_id": [4, 5]}, {}, 4),
        ({}, {"pad_token_id": 6}, 6),
        ({}, {}, None),
    ],
)
def test_padding_is_what_generate_pads_with(generation: Any, config: Any, token: int | None) -> None:
    model = nn.Module()
    model.generation_config = SimpleNamespace(**generation)  # type: ignore[assignment]
    model.config = SimpleNamespace(**config)  # type: ignore[assignment]
    assert padding_of(model) == token
