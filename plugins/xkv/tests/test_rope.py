"""RoPE is undone by the model's own functions, exactly where its model applied it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import DynamicCache, GPTJConfig, LlamaConfig, PreTrainedModel

from separata_xkv.errors import UnsupportedRotation
from separata_xkv.rope import Rotation, rotation_of

ROTARY = ["llama", "qwen3", "phi", "glm4", "cohere", "yarn", "dynamic", "gemma3"]


def keys_before_rope(model: PreTrainedModel, layer: int, prompt: Tensor) -> Tensor:
    """What the model's own projection, and norm if it has one, gave before it rotated."""
    attention = model.get_decoder().layers[layer].self_attn
    normed = getattr(attention, "k_norm", None)
    source = normed if isinstance(normed, torch.nn.Module) else attention.k_proj
    caught: list[Tensor] = []
    handle = source.register_forward_hook(lambda module, args, output: caught.append(output))
    with torch.no_grad():
        model(prompt, cache=DynamicCache(config=model.config))
    handle.remove()
    keys = caught[0]
    if keys.dim() == 3:
        keys = keys.unflatten(-1, (-1, attention.head_dim))
    # Some models norm their keys before, some after the heads come first.
    return keys if keys.shape[1] == model.config.num_key_value_heads else keys.transpose(1, 2)


@pytest.mark.parametrize("kind", ROTARY)
def test_unrotated_keys_are_those_of_the_projection(
    kind: str, model_of: Callable[[str], PreTrainedModel], tokens: Callable[[int, int], Tensor]
) -> None:
    model, prompt = model_of(kind), tokens(2, 40)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(prompt, cache=cache)
    layer = 1  # full attention in every kind
    keys = cache.layers[layer].keys
    rotation = rotation_of(model.config, keys.shape[-1])
    assert isinstance(rotation, Rotation)
    tables = rotation.tables(torch.arange(40).expand(2, -1), 39)
    expected = keys_before_rope(model, layer, prompt)
    torch.testing.assert_close(rotation.unrotate(keys, tables), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(positions=st.lists(st.integers(0, 1000), min_size=1, max_size=8), seed=st.integers(0, 99))
@pytest.mark.parametrize("kind", ROTARY)
def test_rotation_and_its_inverse_cancel_at_any_position(
    kind: str, positions: list[int], seed: int, model_of: Callable[[str], PreTrainedModel]
) -> None:
    config = model_of(kind).config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rotation = rotation_of(config, width)
    tables = rotation.tables(torch.tensor([positions]), 1000)
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(1, 2, len(positions), width, generator=generator)
    torch.testing.assert_close(
        rotation.rotate(rotation.unrotate(keys, tables), tables), keys, rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(
        rotation.unrotate(rotation.rotate(keys, tables), tables), keys, rtol=1e-5, atol=1e-5
    )


def test_a_model_and_its_config_give_the_same_rotation(llama: PreTrainedModel) -> None:
    positions = torch.arange(30)[None]
    first, second = (rotation_of(source, 8).tables(positions, 29) for source in (llama, llama.config))
    assert first is not None
    assert second is not None
    assert torch.equal(first.cos, second.cos)


def test_dynamic_frequencies_follow_the_horizon_and_leave_the_model_alone(
    model_of: Callable[[str], PreTrainedModel],
) -> None:
    model = model_of("dynamic")
    before = model.get_decoder().rotary_emb.inv_freq.clone()
    rotation, positions = rotation_of(model, 8), torch.arange(10)[None]
    short = rotation.tables(positions, 9)
    long = rotation.tables(positions, 1000)
    assert short is not None
    assert long is not None
    assert not torch.allclose(short.cos, long.cos)
    assert torch.equal(model.get_decoder().rotary_emb.inv_freq, before)


def test_half_precision_keys_stay_in_their_precision(
    llama: PreTrainedModel, generator: torch.Generator
) -> None:
    rotation = rotation_of(llama.config, 8)
    tables = rotation.tables(torch.arange(20)[None], 19)
    keys = torch.randn(1, 2, 20, 8, generator=generator).bfloat16()
    back = rotation.rotate(rotation.unrotate(keys, tables), tables)
    assert back.dtype == torch.bfloat16
    # Two roundings to 8 bits.
    torch.testing.assert_close(back, keys, rtol=2**-6, atol=2**-6)


def test_models_with_learned_positions_pass_keys_through(
    model_of: Callable[[str], PreTrainedModel], generator: torch.Generator
) -> None:
    rotation = rotation_of(model_of("gpt2").config, 8)
    keys = torch.randn(1, 2, 3, 8, generator=generator)
    tables = rotation.tables(torch.arange(3)[None], 2)
    assert rotation.unrotate(keys, tables) is keys
    assert rotation.rotate(keys, tables) is keys
    assert list(rotation.tensors()) == []


def test_a_function_with_other_arguments_is_refused() -> None:
    with pytest.raises(UnsupportedRotation, match="takes tensor, sin, cos"):
        rotation_of(GPTJConfig(n_embd=32, n_layer=1, n_head=4, rotary_dim=4), 8)


def test_a_function_that_does_not_undo_itself_is_refused(llama: PreTrainedModel) -> None:
    def doubled(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        return query, 2 * key * cos[:, None]

    with pytest.raises(UnsupportedRotation, match="not undone"):
        Rotation(llama.get_decoder().rotary_emb, doubled, layer_type=None, head_dim=8)


def test_the_width_comes_from_the_tables(model_of: Callable[[str], PreTrainedModel]) -> None:
    # Half of the eight channels of each head turn.
    rotation = rotation_of(model_of("phi").config, 8)
    keys = torch.ones(1, 1, 1, 8)
    turned = rotation.rotate(keys, rotation.tables(torch.tensor([[5]]), 5))
    assert torch.equal(turned[..., 4:], keys[..., 4:])
    assert not torch.equal(turned[..., :4], keys[..., :4])


def test_a_config_that_no_model_is_known_for_is_refused() -> None:
    class Strange(LlamaConfig):
        model_type = "strange"

    config = Strange()
    with pytest.raises(UnsupportedRotation, match="Strange"):
        rotation_of(config, 8)
