"""Models with quantised layers."""

import pytest
import torch
from torch import nn

from separata_mixfp4.errors import GroupMismatch, NothingToQuantise
from separata_mixfp4.model import QuantizedLinear, collect_hessians, linear_layers, quantize_model
from separata_mixfp4.quantizer import fake_quantize

IDS = torch.arange(40).view(2, 20)


def quantised(model):
    return [name for name, layer in model.named_modules() if isinstance(layer, QuantizedLinear)]


def test_all_linear_layers_but_the_head_are_packed(llama):
    quantize_model(llama)
    assert len(quantised(llama)) == 14
    assert isinstance(llama.lm_head, nn.Linear)
    assert llama(IDS).logits.isfinite().all()


def test_a_quantised_layer_is_the_layer_on_quantised_numbers():
    layer = nn.Linear(32, 8).double()
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = QuantizedLinear.from_linear(layer)
    expected = fake_quantize(x) @ fake_quantize(layer.weight).T + layer.bias
    assert torch.allclose(made(x), expected, rtol=1e-12)


def test_weights_can_stay_as_they_are(llama):
    exact = llama(IDS).logits
    quantize_model(llama, weights=False)
    assert not quantised(llama)
    assert not torch.equal(llama(IDS).logits, exact)


def test_a_rotation_leaves_the_layer_what_it_was():
    layer = nn.Linear(32, 8).double()
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = QuantizedLinear.from_linear(layer, rotation=16, activations=False)
    # Rounded to 4 bits, a layer is about a tenth off.
    assert (made(x) - layer(x)).norm() < 0.2 * layer(x).norm()


def test_the_tensor_scale_keeps_its_bits_when_the_model_is_cast():
    made = QuantizedLinear.from_linear(nn.Linear(32, 8))
    before = made.weight_global_scale.clone()
    made.to(torch.bfloat16)
    assert torch.equal(made.weight_global_scale, before)
    assert made(torch.ones(1, 32, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_calibration_brings_outputs_nearer(llama):
    exact = llama(IDS).logits
    layers = dict(linear_layers(llama))
    hessians = collect_hessians(llama, layers, IDS)
    name = "model.layers.0.mlp.down_proj"
    root = torch.linalg.cholesky(hessians[name].double() + 1e-9 * torch.eye(48))

    def error(layer):
        return ((layer.stored.dequantize() - layers[name].weight).double() @ root).norm()

    plain = QuantizedLinear.from_linear(layers[name])
    better = QuantizedLinear.from_linear(layers[name], hessian=hessians[name])
    assert error(better) < error(plain)
    quantize_model(llama, calibration=IDS)
    assert (llama(IDS).logits - exact).norm() < exact.norm()


def test_hessians_are_sums_over_all_tokens(llama):
    layers = {"model.layers.0.self_attn.q_proj": llama.model.layers[0].self_attn.q_proj}
    found = collect_hessians(llama, layers, IDS)["model.layers.0.self_attn.q_proj"]
    x = llama.model.layers[0].input_layernorm(llama.model.embed_tokens(IDS)).flatten(0, 1)
    assert torch.allclose(found, x.T @ x, rtol=1e-4)


def test_a_layer_that_does_not_fit_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(32, 40), nn.Linear(40, 8))
    with pytest.raises(GroupMismatch):
        quantize_model(model)
    assert not quantised(model)
    quantize_model(model, pad=True)
    assert model(torch.ones(1, 32)).shape == (1, 8)


def test_nothing_to_quantise_is_said():
    with pytest.raises(NothingToQuantise):
        quantize_model(nn.Sequential(nn.ReLU()))
