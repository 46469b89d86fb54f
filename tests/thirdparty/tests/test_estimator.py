"""The estimator does what its definition says."""

import torch
from separata_nile import MeanEstimator


def test_the_standard_error_is_that_of_the_mean() -> None:
    found = MeanEstimator().fit(torch.tensor([1.0, 2.0, 3.0, 4.0])).estimate_
    assert (found.value, round(found.std_error, 6)) == (2.5, 0.645497)
