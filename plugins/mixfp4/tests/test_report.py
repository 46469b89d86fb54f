"""The report on crest factors."""

import pytest
import torch

from separata_mixfp4.errors import InvalidSetting, NothingToQuantise
from separata_mixfp4.quantizer import quantize
from separata_mixfp4.report import CrestFactorReport, crest_factors, predicted_qsnr, qsnr


def test_a_row_says_what_each_method_makes_of_a_tensor(tensors):
    rows = CrestFactorReport().fit(tensors).rows_
    for row, (name, tensor) in zip(rows, tensors.items(), strict=True):
        assert row["tensor"] == name
        for method in ("mixfp4", "nvfp4", "nvint4", "fouroversix"):
            assert row[method] == qsnr(tensor, method)
        assert row["mixfp4"] >= max(row["nvfp4"], row["nvint4"])


def test_flat_blocks_have_small_crest_factors_and_take_the_uniform_grid(tensors):
    flat, heavy = CrestFactorReport().fit({name: tensors[name] for name in ("flat", "heavy")}).rows_
    assert flat["crest_90"] < 1.2 < heavy["crest_10"]
    assert flat["uniform"] > heavy["uniform"]
    assert flat["below"] == 1.0


def test_crest_factors_have_closed_forms():
    x = torch.zeros(3, 16)
    x[0], x[1, 4] = -2.0, 7.0
    crest, energy = crest_factors(x)
    assert crest.tolist() == [1.0, 4.0]
    assert energy.tolist() == [64.0, 49.0]


def test_histograms_are_shares(tensors):
    report = CrestFactorReport(bins=20).fit(tensors)
    assert len(report.edges_) == 21
    for shares in report.histograms_.values():
        assert shares.sum() == pytest.approx(1.0)


def test_the_prediction_is_near_on_gaussians():
    x = torch.randn(2000, 64, generator=torch.Generator().manual_seed(0))
    # It knows neither the rounding of the scales nor that the better grid is taken block by block.
    assert predicted_qsnr(*crest_factors(x)) == pytest.approx(qsnr(x, "mixfp4"), abs=0.7)


def test_empty_blocks_are_counted_and_take_no_part(tensors):
    x = torch.ones(2, 32)
    x[1] = 0
    x[0, 16:] = 1e-9
    (row,) = CrestFactorReport().fit({"x": x}).rows_
    assert row["empty"] == 3
    assert row["uniform"] == 1.0


def test_a_stored_tensor_has_no_noise(tensors):
    (row,) = CrestFactorReport().fit({"x": quantize(tensors["mixed"], method="nvfp4")}).rows_
    assert row["mixfp4"] is None
    assert row["uniform"] == 0.0


def test_zeros_are_reported():
    (row,) = CrestFactorReport().fit({"x": torch.zeros(2, 16)}).rows_
    assert row["empty"] == 2
    assert row["nvfp4"] == float("inf")


def test_an_unknown_parameter_and_no_tensor_are_refused():
    with pytest.raises(InvalidSetting):
        CrestFactorReport().set_params(depth=3)
    with pytest.raises(NothingToQuantise):
        CrestFactorReport().fit({})
