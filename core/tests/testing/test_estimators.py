"""Each check of an estimator catches the fault it is for, and no other."""

from __future__ import annotations

from typing import Any, Self

import pytest
import torch
from torch import Tensor

from separata.estimates import Estimate
from separata.testing.conformance import Case
from separata.testing.estimators import CHECKS, EstimatorSubject
from separata.testing.examples import EstimatorExample


class Mean:
    """A right estimator: the mean of a sample, shrunk towards zero."""

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def fit(self, sample: Tensor) -> Self:
        if not bool(sample.isfinite().all()):
            raise ValueError("the sample holds a value that is not finite")
        self.mean_ = float(sample.mean()) * (1 - self.shrinkage)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"shrinkage": self.shrinkage}

    def set_params(self, **params: Any) -> Self:
        if set(params) - {"shrinkage"}:
            raise ValueError("the only parameter is shrinkage")
        self.__dict__.update(params)
        return self


class ConvertsItsParameter(Mean):
    def __init__(self, shrinkage: Any = 0.25) -> None:
        self.shrinkage = torch.tensor(shrinkage)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"shrinkage": float(self.shrinkage)}


class TakesAnyParameter(Mean):
    def set_params(self, **params: Any) -> Self:
        self.shrinkage = params.get("shrinkage", self.shrinkage)
        return self


class ReturnsNothing(Mean):
    def fit(self, sample: Tensor) -> Self:
        super().fit(sample)
        self.count = len(sample)
        return self


class ChangesItsParameter(Mean):
    def fit(self, sample: Tensor) -> Self:
        super().fit(sample)
        self.shrinkage = 0.0 if self.shrinkage else 0.0625
        self.mean_ = float(sample.mean())
        return self


class CentresItsData(Mean):
    def fit(self, sample: Tensor) -> Self:
        super().fit(sample)
        sample[0] = -sample[0]
        return self


class GoesOnFromTheLastFit(Mean):
    def fit(self, sample: Tensor) -> Self:
        start = getattr(self, "mean_", 0.0)
        super().fit(sample)
        self.mean_ += 0.5 * start
        return self


class FitsAnything(Mean):
    def fit(self, sample: Tensor) -> Self:
        return super().fit(torch.nan_to_num(sample))


def inference(spread: float) -> Any:
    def draw(generator: torch.Generator) -> tuple[Estimate, float]:
        sample = torch.randn(50, generator=generator) + 2.0
        return Estimate(float(sample.mean()), spread * float(sample.std()) / 50**0.5), 2.0

    return draw


def failures(make: Any, spread: float = 1.0) -> list[str]:
    example = EstimatorExample(
        make=make,
        data=lambda generator: (torch.randn(20, generator=generator),),
        bad=[(torch.tensor([1.0, float("nan")]),)],
        inference=inference(spread),
    )
    return [
        check.name
        for check in CHECKS
        if Case("estimator", "toy", check, EstimatorSubject(example)).run().state == "failed"
    ]


@pytest.mark.parametrize(
    ("make", "caught"),
    [
        (Mean, []),
        (ConvertsItsParameter, ["keeps-its-parameters"]),
        (TakesAnyParameter, ["sets-its-parameters"]),
        (ReturnsNothing, ["fits-and-returns-itself"]),
        (ChangesItsParameter, ["leaves-parameters-alone"]),
        (CentresItsData, ["leaves-data-unchanged"]),
        (GoesOnFromTheLastFit, ["fits-the-same-again"]),
        (FitsAnything, ["refuses-bad-data"]),
    ],
)
def test_a_fault_fails_exactly_its_check(make: Any, caught: list[str]) -> None:
    assert failures(make) == caught


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_intervals_too_narrow_or_too_wide_are_caught(spread: float) -> None:
    assert failures(Mean, spread) == ["covers-the-truth"]
