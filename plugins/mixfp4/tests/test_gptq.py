"""Error compensation."""

import pytest
import torch

from separata_mixfp4.errors import BadCodes
from separata_mixfp4.gptq import gptq
from separata_mixfp4.quantizer import quantize

METHODS = ["mixfp4", "nvfp4", "nvint4", "fouroversix"]


def correlated():
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(8, 96, generator=generator, dtype=torch.float64)
    inputs = torch.randn(500, 8, generator=generator, dtype=torch.float64) @ mixing
    return inputs + 0.1 * torch.randn(500, 96, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("method", METHODS)
def test_without_correlation_it_rounds_to_nearest(tensors, method):
    weight = tensors["gaussian"]
    stored = gptq(weight, torch.eye(96, dtype=torch.float64), method=method)
    plain = quantize(weight, method=method)
    assert torch.equal(stored.scales, plain.scales)
    assert torch.equal(stored.dequantize(torch.float64), plain.dequantize(torch.float64))


@pytest.mark.parametrize("method", METHODS)
def test_on_correlated_inputs_it_halves_the_error_of_the_output(tensors, method):
    inputs, weight = correlated(), tensors["gaussian"]
    exact = inputs @ weight.T

    def error(stored):
        return (inputs @ stored.dequantize(torch.float64).T - exact).square().sum()

    assert error(gptq(weight, inputs.T @ inputs, method=method)) < 0.5 * error(
        quantize(weight, method=method)
    )


def test_columns_that_are_never_used_do_no_harm(tensors):
    inputs = correlated()
    inputs[:, 10:20] = 0
    stored = gptq(tensors["gaussian"], inputs.T @ inputs, damping=0.0)
    assert stored.dequantize().isfinite().all()


def test_a_hessian_of_another_size_is_refused(tensors):
    with pytest.raises(BadCodes):
        gptq(tensors["gaussian"], torch.eye(95))
