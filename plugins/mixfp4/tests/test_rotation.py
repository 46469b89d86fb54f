"""Hadamard rotations."""

import pytest
import torch

from separata_mixfp4.errors import InvalidSetting
from separata_mixfp4.rotation import hadamard, rotate


@pytest.mark.parametrize("size", [1, 2, 16, 64])
def test_the_matrix_is_its_own_inverse(size):
    assert torch.allclose(hadamard(size) @ hadamard(size), torch.eye(size, dtype=torch.float64), atol=1e-14)


def test_products_stay_the_same(tensors):
    x, weight = tensors["gaussian"], tensors["heavy"]
    assert torch.allclose(rotate(x, 32, 5) @ rotate(weight, 32, 5).T, x @ weight.T, rtol=1e-10)


def test_seeds_give_other_signs(tensors):
    assert not torch.equal(rotate(tensors["gaussian"], 16, 0), rotate(tensors["gaussian"], 16, 1))


def test_an_outlier_is_spread(tensors):
    x = tensors["gaussian"].clone()
    x[:, 5] *= 100
    assert rotate(x, 32).abs().max() < 0.5 * x.abs().max()


@pytest.mark.parametrize("size", [3, 64])
def test_sizes_that_do_not_fit_are_refused(tensors, size):
    with pytest.raises(InvalidSetting):
        rotate(tensors["gaussian"], size)
