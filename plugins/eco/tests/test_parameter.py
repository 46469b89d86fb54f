from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from separata_eco import QuantizedParameter, memory_report
from separata_eco.errors import InvalidSetting
from separata_mixfp4.errors import NonFinite

Weight = Callable[..., QuantizedParameter]


def test_it_is_a_parameter_of_the_weights_shape(weight: Weight) -> None:
    made = weight()
    assert isinstance(made, nn.Parameter)
    assert (made.shape, made.dtype, made.requires_grad) == ((6, 256), torch.float32, True)
    assert made.nbytes == 6 * 256 + 6 * 4


@pytest.mark.parametrize("name", ["fp8_e4m3", "int4", "mixfp4"])
@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_linear_has_the_gradients_of_the_numbers(weight: Weight, name: str, leading: tuple[int, ...]) -> None:
    made = weight(name, torch.float64)
    dense = made.dequantize().requires_grad_()
    x = torch.randn(*leading, 256, dtype=torch.float64)
    found, expected = [], []
    for used, into in ((made, found), (dense, expected)):
        inputs, bias = x.clone().requires_grad_(), torch.ones(6, dtype=torch.float64, requires_grad=True)
        output = nn.functional.linear(inputs, used, bias)
        output.square().sum().backward()
        into += [output, inputs.grad, used.grad, bias.grad]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert type(made.grad) is torch.Tensor


def test_any_other_function_sees_the_numbers(weight: Weight) -> None:
    made, x = weight(), torch.randn(3, 256)
    dense = made.dequantize().requires_grad_()
    for used in (made, dense):
        ((x @ used.T).sum() + used[2].exp().sum()).backward()
    torch.testing.assert_close(made.grad, dense.grad)


def test_the_graph_keeps_codes_and_no_dense_copy(weight: Weight) -> None:
    layer = nn.Linear(256, 6)
    layer._parameters["weight"] = weight()
    kept = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    x = torch.randn(2, 256, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(x)
    assert all(tensor.shape != (6, 256) for tensor in kept)
    output.sum().backward()
    assert memory_report(layer)["other"] == 0


def test_gradients_add_up_at_fixed_weights(weight: Weight) -> None:
    once, twice, x = weight(), weight(), torch.randn(4, 256)
    nn.functional.linear(x, once).sum().backward()
    for part in x.split(2):
        nn.functional.linear(part, twice).sum().backward()
    torch.testing.assert_close(once.grad, twice.grad)


def test_autocast_multiplies_in_half_precision(weight: Weight) -> None:
    made = weight()
    with torch.autocast("cpu", torch.bfloat16):
        output = nn.functional.linear(torch.randn(3, 256), made)
    assert output.dtype == torch.bfloat16
    output.sum().backward()
    assert made.grad.dtype == torch.float32


def test_a_refused_value_leaves_it_alone(weight: Weight) -> None:
    made = weight()
    before = made.dequantize()
    with pytest.raises(NonFinite):
        made.store_(torch.full((6, 256), torch.nan))
    assert torch.equal(made.dequantize(), before)


def test_nothing_else_changes_it(weight: Weight) -> None:
    with pytest.raises(InvalidSetting, match="store_"):
        nn.init.zeros_(weight())


def test_copies_are_its_own(weight: Weight) -> None:
    made = weight()
    copied = deepcopy(made)
    copied.store_(torch.zeros(6, 256))
    assert isinstance(copied, nn.Parameter)
    assert made.dequantize().any()


def test_another_dtype_is_that_of_use(weight: Weight) -> None:
    layer = nn.Linear(256, 6)
    layer._parameters["weight"] = weight()
    kept = layer.weight
    layer.bfloat16()
    assert layer.weight is kept
    assert layer.weight.parts["scales"].dtype == torch.float32
    assert layer(torch.randn(2, 256, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "count"), [("fp8_e4m3", 3), ("int4", 3), ("fp8_e4m3:tensor", 1), ("mixfp4", 1)]
)
def test_pieces_are_views_of_rows_where_rows_are_independent(weight: Weight, name: str, count: int) -> None:
    made, x = weight(name), torch.randn(6, 256)
    whole = weight(name).store_(x)
    pieces = list(made.pieces(512))
    assert len(pieces) == count
    for rows, piece in pieces:
        piece.store_(x[rows])
    assert torch.equal(made.dequantize(), whole)
