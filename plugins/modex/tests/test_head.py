"""Heads on any backbone, and the loss that trains them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from separata_modex import ExtendedFlexibleDirichlet, MoDEXHead, errors, modex_loss, modexify


def test_the_last_linear_layer_becomes_the_evidence_head() -> None:
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    last, rows = model[2], torch.randn(4, 5)
    expected = model(rows).exp() + 1e-6
    network = modexify(model)
    assert network.head.concentration is last
    torch.testing.assert_close(network(rows).concentration, expected)
    modex_loss(network(rows).law, torch.tensor([0, 1, 2, 0])).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_leaves_the_heads_in_float32(dtype: torch.dtype) -> None:
    head, rows = MoDEXHead(5, 3, spectral=False), torch.randn(2, 5).to(dtype)
    plain = head(rows)
    with torch.autocast("cpu", dtype=dtype):
        found = head(rows)
        loss = modex_loss(found.law, torch.tensor([0, 1]))
    for ours, expected in zip(found, plain, strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, expected)
    assert torch.equal(loss, modex_loss(plain.law, torch.tensor([0, 1])))


def test_large_logits_of_a_half_precision_head_stay_finite() -> None:
    head = MoDEXHead(2, 3, spectral=False).half()
    said = head(torch.full((1, 2), 3e4).half())
    assert said.concentration.dtype == torch.float32
    assert said.law.variance.isfinite().all()


@pytest.mark.parametrize("name", ["concentration", "advocacy", "plausibility"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_output_that_is_not_finite_names_its_head(name: str, value: str) -> None:
    head = MoDEXHead(2, 3, spectral=False)
    last = [part for part in getattr(head, name).modules() if isinstance(part, nn.Linear)][-1]
    nn.init.constant_(last.bias, float(value))
    with pytest.raises(errors.UnstableHead, match=f"the {name} head"):
        head(torch.ones(1, 2))


def test_one_class_and_models_without_linear_layers_are_refused() -> None:
    with pytest.raises(errors.InvalidSetting, match="num_classes is 1"):
        MoDEXHead(2, 1)
    with pytest.raises(errors.InvalidSetting, match="num_classes is 1"):
        modexify(nn.Sequential(nn.Linear(4, 1)))
    with pytest.raises(errors.InvalidSetting, match="no linear layer"):
        modexify(nn.Sequential(nn.ReLU()))


def law() -> ExtendedFlexibleDirichlet:
    return ExtendedFlexibleDirichlet(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([[0.5, 0.5]]))


def test_the_loss_is_its_equation() -> None:
    # Mean and plausibility are even: 2 * (1/4 + 1/4); KL of (0.9, 0.1) from (1/2, 1/2).
    kl = 0.9 * torch.tensor(1.8).log() + 0.1 * torch.tensor(0.2).log()
    torch.testing.assert_close(modex_loss(law(), torch.tensor([0])), 1 + kl)
    back = -0.5 * (torch.tensor(1.8).log() + torch.tensor(0.2).log())
    torch.testing.assert_close(modex_loss(law(), torch.tensor([0]), kl_direction="reverse"), 1 + back)


def test_soft_labels_are_taken() -> None:
    hard, soft = modex_loss(law(), torch.tensor([0])), modex_loss(law(), torch.tensor([[1.0, 0.0]]))
    assert float(hard) == float(soft)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (torch.tensor([2]), "labels run from 2"),
        (torch.tensor([[1.0, 1.0]]), "do not sum to 1"),
        (torch.ones(1, 3), "labels have shape"),
    ],
)
def test_wrong_labels_are_refused(target: torch.Tensor, message: str) -> None:
    with pytest.raises(errors.InvalidLabels, match=message):
        modex_loss(law(), target)
