"""Real models in 4 bits."""

import pytest
import torch
from torch import nn

from separata_kit_llm import perplexity
from separata_mixfp4.evaluation import first_tokens, model_tensors, perplexities, quantized
from separata_mixfp4.model import QuantizedLinear, quantize_model

IDS = torch.arange(20)[None]


def test_keys_values_and_inputs_are_what_the_model_computes(llama):
    found = model_tensors(llama, IDS)
    assert len(found) == 4 + 15
    inside = llama.model.layers[0].input_layernorm(llama.model.embed_tokens(IDS))
    assert torch.allclose(found["model.layers.0.self_attn.v_proj"], inside[0])
    values = llama.model.layers[0].self_attn.v_proj(inside)[0]
    assert torch.allclose(found["values.0"], values, atol=1e-6)
    assert set(model_tensors(llama, IDS, inputs=())) == {"keys.0", "keys.1", "values.0", "values.1"}


@pytest.mark.parametrize(("weights", "activations"), [(True, True), (True, False), (False, True)])
def test_a_row_is_the_perplexity_of_the_quantised_model(llama, tokenizer, text, weights, activations):
    options = {"weights": weights, "activations": activations}
    exact, row = perplexities(llama, tokenizer, text, ["mixfp4"], tokens=60, window=60, **options)
    assert exact["perplexity"] == perplexity(llama, tokenizer, first_tokens(tokenizer, text, 60)).perplexity
    quantize_model(llama, **options)
    expected = perplexity(llama, tokenizer, first_tokens(tokenizer, text, 60)).perplexity
    assert row["perplexity"] == pytest.approx(expected, rel=1e-9)
    assert row["tokens"] == 59


def test_the_model_is_itself_again(llama):
    before = llama(IDS).logits
    with quantized(llama, "mixfp4"):
        assert any(isinstance(module, QuantizedLinear) for module in llama.modules())
    assert torch.equal(llama(IDS).logits, before)
    assert isinstance(llama.model.layers[0].mlp.up_proj, nn.Linear)


def test_exact_changes_nothing(llama):
    before = llama(IDS).logits
    with quantized(llama, "exact"):
        assert torch.equal(llama(IDS).logits, before)
