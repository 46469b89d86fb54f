"""Closed forms of the crest factor."""

import numpy as np
import pytest
import torch

from separata_mixfp4.quantizer import fake_quantize
from separata_mixfp4.theory import crossover, decibels, floating_error, uniform_error


def test_the_crossover_of_the_paper():
    assert crossover(16) == pytest.approx(2.2243, abs=5e-5)
    assert decibels(uniform_error(crossover(16))) == pytest.approx(21.03, abs=5e-3)


def test_curves_cross_once():
    signs = [np.sign(uniform_error(value) - floating_error(value)) for value in np.linspace(1.05, 3.95, 300)]
    assert np.count_nonzero(np.diff(signs)) == 1


def test_the_floating_error_is_that_of_an_integral():
    # Half a step squared over three in the subnormals; x^2 / 96 beyond them, for a Gaussian of variance 1.
    crest, x = 2.5, np.linspace(-12, 12, 400_001)
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    inside = np.abs(x) < crest / 6
    noise = np.where(inside, (0.5 * crest / 6) ** 2 / 12, x**2 / 96) * density
    expected = noise.sum() * (x[1] - x[0]) - crest**2 / 16 / 96
    assert floating_error(crest) == pytest.approx(expected, rel=1e-3)


def test_the_uniform_error_is_measured_on_real_blocks():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200_000, 16, generator=generator, dtype=torch.float64)
    crest = x.abs().amax(-1) / x.square().mean(-1).sqrt()
    x = x[(crest > 2.0) & (crest < 2.1)]
    error = (fake_quantize(x, method="nvint4") - x).square().sum() / x.square().sum()
    # The theory leaves out the rounding of the scales to 3 bits, which costs a few per cent.
    assert error.item() == pytest.approx(uniform_error(2.05), rel=0.08)


def test_no_noise_is_infinitely_far_below():
    assert decibels(0.0) == float("inf")
