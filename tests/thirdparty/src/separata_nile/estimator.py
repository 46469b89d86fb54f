"""The mean with its standard error, a working example of an estimator: put the paper's estimator here."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor

from separata import Estimate


class MeanEstimator:
    """Estimates the mean of a sample.

    Args:
        unbiased: Whether the variance is divided by the sample size less one.

    Attributes:
        estimate_: The mean and its standard error, after ``fit``.
    """

    def __init__(self, unbiased: bool = True) -> None:
        self.unbiased = unbiased

    def fit(self, sample: Tensor) -> Self:
        """Estimate from a sample.

        Args:
            sample: A floating tensor with one dimension and at least two values.

        Raises:
            ValueError: If it has another shape, or a value that is not finite.
        """
        if sample.dim() != 1 or len(sample) < 2:
            raise ValueError(f"the sample has shape {tuple(sample.shape)}; give at least two values in a row")
        if not bool(sample.isfinite().all()):
            raise ValueError("the sample holds a value that is not finite; drop or fill it first")
        spread = float(sample.double().var(unbiased=self.unbiased))
        self.estimate_ = Estimate(float(sample.double().mean()), (spread / len(sample)) ** 0.5)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {"unbiased": self.unbiased}

    def set_params(self, **params: Any) -> Self:
        """Change constructor parameters.

        Raises:
            ValueError: If one does not exist.
        """
        unknown = sorted(set(params) - {"unbiased"})
        if unknown:
            raise ValueError(f"there is no parameter {', '.join(unknown)}; the only one is unbiased")
        self.unbiased = params.get("unbiased", self.unbiased)
        return self
