"""A model's config says which layers can be compressed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import BartConfig, GPT2Config, MistralConfig, PreTrainedModel, SmolLM3Config

from separata_xkv.anatomy import Anatomy
from separata_xkv.attention import attention_of
from separata_xkv.errors import UnsupportedModel
from separata_xkv.rope import Rotation, Unrotated


def test_layers_with_a_sliding_window_are_left_out(model_of: Callable[[str], PreTrainedModel]) -> None:
    assert Anatomy.of(model_of("gemma3").config).layers == (1, 3, 4)


def test_layers_without_rotation_are_told_apart() -> None:
    config = SmolLM3Config(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, pad_token_id=0
    )
    anatomy = Anatomy.of(config)
    assert anatomy.rotated == {0, 1, 2}
    assert isinstance(anatomy.rotation_of(2), Rotation)
    assert type(anatomy.rotation_of(3)) is Unrotated


def test_latents_are_known_by_their_shape(model_of: Callable[[str], PreTrainedModel]) -> None:
    anatomy = Anatomy.of(model_of("deepseek").config)
    assert anatomy.is_latent(torch.zeros(1, 1, 3, 16))
    assert not anatomy.is_latent(torch.zeros(1, 4, 3, 16))
    assert type(anatomy.rotation) is Unrotated
    assert not Anatomy.of(model_of("llama").config).is_latent(torch.zeros(1, 1, 3, 16))


@pytest.mark.parametrize("config", [BartConfig(), GPT2Config(add_cross_attention=True)])
def test_models_that_attend_to_an_encoder_are_refused(config: object) -> None:
    with pytest.raises(UnsupportedModel, match="attends to an encoder"):
        Anatomy.of(config)


def test_models_with_sliding_windows_only_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="no layer of this mistral"):
        Anatomy.of(MistralConfig(sliding_window=128, num_hidden_layers=2))


def test_the_attention_in_use_is_seen_when_it_changes(llama: PreTrainedModel) -> None:
    anatomy = Anatomy.of(llama.config)
    assert not anatomy.defers
    with attention_of(llama):
        assert anatomy.defers
    assert not anatomy.defers
