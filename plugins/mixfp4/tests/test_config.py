"""Settings."""

import pytest

from separata_mixfp4.blocks import SCHEMES
from separata_mixfp4.config import METHODS, EvaluationConfig, QuantizeConfig
from separata_mixfp4.errors import InvalidSetting


def test_methods_are_those_that_there_are():
    assert tuple(SCHEMES) == METHODS


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuantizeConfig(method="fp4"),
        lambda: QuantizeConfig(rotation=-1),
        lambda: QuantizeConfig(gptq_tokens=-1),
        lambda: EvaluationConfig(methods=("mixfp4", "exact")),
        lambda: EvaluationConfig(tokens=1),
        lambda: EvaluationConfig(window=1),
    ],
)
def test_what_is_out_of_range_is_refused(make):
    with pytest.raises(InvalidSetting):
        make()
