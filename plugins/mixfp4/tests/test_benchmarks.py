"""Races."""

import pytest
import torch

from separata.claims import Trial
from separata.registry import Registry
from separata_mixfp4 import benchmarks
from separata_mixfp4.quantizer import quantize


@pytest.fixture
def trial():
    return Trial("mixfp4", Registry())


@pytest.mark.parametrize("run", [benchmarks.against_nvfp4, benchmarks.against_reference])
def test_both_sides_of_a_race_make_numbers_of_one_shape(trial, run):
    one = next(iter(run(trial)))
    assert one.ours().shape == one.peer().shape


def test_torchao_makes_the_same_nvfp4(trial):
    pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")
    x = benchmarks.gaussian(trial, 1 << 13)
    ours = quantize(x, method="nvfp4").dequantize()
    # One multiplication more: a float32 rounding, and where it falls on a tie the next number.
    near = torch.isclose(benchmarks.torchao_nvfp4()(x), ours, rtol=1e-6)
    assert near.double().mean() > 0.9999
