"""Quantisation-aware training."""

import torch
from torch import nn

from separata_mixfp4.model import QuantizedLinear
from separata_mixfp4.quantizer import fake_quantize
from separata_mixfp4.training import QATRecipe, straight_through


def test_the_gradient_is_that_of_the_identity():
    x = torch.randn(
        4, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    weights = torch.arange(128.0, dtype=torch.float64).view(4, 32)
    found = straight_through(x)
    (found * weights).sum().backward()
    assert torch.equal(found, fake_quantize(x))
    assert torch.equal(x.grad, weights)


def test_a_prepared_layer_multiplies_quantised_numbers():
    layer, x = nn.Linear(32, 8), torch.randn(5, 32, generator=torch.Generator().manual_seed(0))
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    QATRecipe().prepare(nn.Sequential(layer))
    assert torch.equal(layer(x), nn.functional.linear(fake_quantize(x), fake_quantize(weight), bias))


def test_training_lowers_the_loss_and_the_packed_model_keeps_it():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 16))
        x, target = torch.randn(64, 32), torch.randn(64, 16)
    recipe = QATRecipe()
    recipe.prepare(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    trained = (model(x) - target).square().mean().item()
    recipe.convert(model)
    assert trained < 0.5 * losses[0]
    assert isinstance(model[0], QuantizedLinear)
    # The same 4-bit numbers: only float32 sums differ, and a sum may fall on the other side of a tie.
    assert abs((model(x) - target).square().mean().item() - trained) < 0.02 * trained


def test_parameters_keep_their_places_in_an_optimizer():
    model = nn.Sequential(nn.Linear(32, 8))
    before = model[0].weight
    QATRecipe(activations=False).prepare(model)
    assert any(parameter is before for parameter in model.parameters())
