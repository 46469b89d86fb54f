"""What an estimator says of a quantity: a value with its uncertainty."""

from __future__ import annotations

from statistics import NormalDist

import attrs


@attrs.frozen
class Estimate:
    """A value with a standard error and normal confidence intervals.

    Args:
        value: The point estimate.
        std_error: Its standard error, in the value's unit.
    """

    value: float
    std_error: float = attrs.field(validator=attrs.validators.ge(0))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The two-sided normal confidence interval.

        Args:
            level: The coverage asked for, between 0 and 1.

        Raises:
            ValueError: If the level is not strictly between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it lies strictly between 0 and 1, such as 0.95")
        half_width = NormalDist().inv_cdf(0.5 + level / 2) * self.std_error
        return self.value - half_width, self.value + half_width
