from __future__ import annotations

import io
from copy import deepcopy

import pytest
import torch
from torch import nn

from separata_eco import ECOAdamW, QuantizedParameter, convert_, dequantize_
from separata_eco.errors import InvalidSetting, NothingToQuantise, ShapeMismatch, SharedWeight
from separata_kit_llm import tiny


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 48, bias=False))


def test_linear_weights_alone_are_converted(model: nn.Sequential) -> None:
    convert_(model)
    kinds = {name: isinstance(weight, QuantizedParameter) for name, weight in model.named_parameters()}
    assert {name for name, kind in kinds.items() if kind} == {"0.weight", "2.weight"}


def test_skipped_modules_stay(model: nn.Sequential) -> None:
    convert_(model, skip=("2*",))
    assert type(model[2].weight) is nn.Parameter


def test_back_again(model: nn.Sequential) -> None:
    convert_(model)
    numbers = model[0].weight.dequantize()
    dequantize_(model)
    assert all(type(weight) is nn.Parameter for weight in model.parameters())
    assert torch.equal(model[0].weight, numbers)
    assert "0.weight" in model.state_dict()


def test_state_dicts_hold_plain_tensors_that_torch_loads_safely(model: nn.Sequential) -> None:
    other = convert_(deepcopy(model))
    convert_(model)
    model[0].weight.store_(torch.randn(32, 64))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    assert "0.weight.codes" in saved
    other.load_state_dict(saved)
    x = torch.randn(3, 64)
    assert torch.equal(other(x), model(x))


def test_a_dense_state_dict_is_quantised_on_loading(model: nn.Sequential) -> None:
    dense = model.state_dict()
    other = convert_(deepcopy(model))
    expected = other[0].weight.dequantize()
    other[0].weight.store_(torch.zeros(32, 64))
    other.load_state_dict(dense)
    assert torch.equal(other[0].weight.dequantize(), expected)


def test_rows_that_groups_do_not_divide(model: nn.Sequential) -> None:
    with pytest.raises(ShapeMismatch, match=r"2\.weight"):
        convert_(model, quantizer="int4", granularity=64)
    assert type(model[0].weight) is nn.Parameter
    by_row = convert_(deepcopy(model), quantizer="int4", granularity=64, mismatch="row")
    assert by_row[2].weight.quantizer.label == "int4:row"
    assert by_row[0].weight.quantizer.label == "int4:64"
    skipped = convert_(deepcopy(model), quantizer="int4", granularity=64, mismatch="skip")
    assert type(skipped[2].weight) is nn.Parameter


def test_tied_weights_are_refused_by_name() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(8, 4), nn.Linear(4, 8)
            self.out.weight = self.table.weight

    with pytest.raises(SharedWeight, match=r"out\.weight is also table\.weight"):
        convert_(Tied())


def test_layers_that_share_a_weight_share_its_codes() -> None:
    first, second = nn.Linear(16, 16), nn.Linear(16, 16)
    second.weight = first.weight
    model = convert_(nn.Sequential(first, second))
    assert model[0].weight is model[1].weight
    assert len([weight for weight in model.parameters() if isinstance(weight, QuantizedParameter)]) == 1


def test_nothing_to_convert() -> None:
    with pytest.raises(NothingToQuantise):
        convert_(nn.LayerNorm(4))


def test_unknown_options_are_refused(model: nn.Sequential) -> None:
    with pytest.raises(InvalidSetting):
        convert_(model, scale="moving")
    with pytest.raises(InvalidSetting):
        convert_(model, quantizer="fp3")


def test_experts_of_a_mixture_are_converted_and_trained() -> None:
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=1, experts=4, active=2, expert_hidden=16)
    convert_(model)
    experts = [
        weight for weight in model.parameters() if isinstance(weight, QuantizedParameter) and weight.ndim == 3
    ]
    assert len(experts) == 2
    ids = torch.randint(0, 256, (2, 16), generator=torch.Generator().manual_seed(0))
    optimizer, losses = ECOAdamW(model.parameters(), lr=1e-2), []
    for _ in range(6):
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.3
