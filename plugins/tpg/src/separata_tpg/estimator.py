"""TPGEstimator: the effect of always treating, from one log, in scikit-learn's and statsmodels' habits."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from separata.estimates import Estimate

from .errors import InvalidSetting, TPGNotice
from .logs import make_log
from .longrun import bandwidth, long_run_variance
from .policy_gradient import Truncated, truncated

LARGEST_K = 10


class TPGEstimator(BaseEstimator):  # type: ignore[misc]
    """Estimate the global average treatment effect of one experiment on a system with memory.

    Each decision is credited with its own outcome and the k after it, weighed by how its arm was drawn. More k, less
    bias from carry-over, more variance. The interval is for the estimator's mean at the chosen k.

    Args:
        k: Later outcomes that count; several, or ``lepski`` for 0 to 10, to have one chosen by Lepski's rule.
        p: Chance of arm 1, or the column that holds it.
        outcome: Column of outcomes.
        arm: Column of arms, 0 or 1.
        time: Column to sort by; rows are in order if None.
        block: Switchback: steps, or a length of time such as ``60min``, that share one coin; k counts blocks.
        baseline: ``past`` subtracts the mean of 50 earlier outcomes: same mean, less variance. None is the paper's.
        form: ``ht`` or ``hajek``, see ``truncated``.
        edge: ``pad`` or ``drop``, see ``truncated``.
        discount: Weight of an outcome against the one before it.
        center: ``global`` or ``local``, see ``long_run_variance``.
        impute: ``zero-effect`` fills missing outcomes, see ``make_log``.
        lepski: Differences from later k up to this many standard errors pass as noise.
        level: Coverage of ``ci_``.

    Attributes:
        k_: The k that was given or chosen.
        estimate_: Value and standard error, a ``separata.estimates.Estimate``.
        se_: Standard error.
        ci_: Interval.
        path_: One row for each k: estimate, std_error, low, high.
        n_steps_: Steps, or blocks.

    References:
        Johari, Peng, Xing, Estimation of Treatment Effects Under Nonstationarity via the Truncated Policy Gradient
        Estimator, arXiv 2506.05308.
    """

    def __init__(
        self,
        k: int | str | Sequence[int] = "lepski",
        *,
        p: float | str = 0.5,
        outcome: str = "outcome",
        arm: str = "arm",
        time: str | None = None,
        block: int | str | None = None,
        baseline: str | None = None,
        form: str = "ht",
        edge: str = "pad",
        discount: float = 1.0,
        center: str = "global",
        impute: str | None = None,
        lepski: float = 1.5,
        level: float = 0.95,
    ) -> None:
        self.k = k
        self.p = p
        self.outcome = outcome
        self.arm = arm
        self.time = time
        self.block = block
        self.baseline = baseline
        self.form = form
        self.edge = edge
        self.discount = discount
        self.center = center
        self.impute = impute
        self.lepski = lepski
        self.level = level

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate from a log.

        Args:
            X: One row for each step, with the columns named above: a table, or what pandas makes one of.
            y: Ignored.

        Raises:
            InvalidLog: If the table makes no experiment.
            InvalidSetting: If a parameter is out of range.
            AssignmentMismatch: If the arms can't have been drawn as p and block say.
        """
        ks = self._check_settings()
        log = make_log(
            pd.DataFrame(X),
            p=self.p,
            outcome=self.outcome,
            arm=self.arm,
            time=self.time,
            block=self.block,
            impute=self.impute,
        )
        if ks[-1] >= len(log):
            raise InvalidSetting(
                f"k is {ks[-1]} for {len(log)} steps", "give a k far below the number of steps"
            )
        found = {
            k: truncated(
                log.outcomes,
                log.arms,
                log.chances,
                k,
                form=self.form,
                edge=self.edge,
                discount=self.discount,
                baseline=self.baseline,
                center=self.center,
            )
            for k in ks
        }
        chosen = found[choose(list(found.values()), self.lepski)]
        if ks[-1] >= len(log) / 10:
            largest = found[ks[-1]]
            warnings.warn(
                f"k = {ks[-1]} is a tenth of the {len(log)} steps or more: standard error "
                f"{float(largest.std_error):.3g}, of little use",
                TPGNotice,
                stacklevel=2,
            )
        self.k_, self.n_steps_ = chosen.k, len(log)
        self.estimate_: Estimate = chosen.estimate
        self.se_ = self.estimate_.std_error
        self.ci_ = self.estimate_.interval(self.level)
        self._rows = [_row(item, self.level) for item in found.values()]
        return self

    @property
    def path_(self) -> pd.DataFrame:
        """One row for each k: estimate, std_error, low, high."""
        return pd.DataFrame(self._rows)

    def summary(self) -> str:
        """The path and the chosen k as a text."""
        low, high = self.ci_
        return "\n".join(
            [
                f"Truncated policy gradient, {self.n_steps_} {'blocks' if self.block else 'steps'}, "
                f"baseline {self.baseline or 'none'}, form {self.form}",
                self.path_.to_string(index=False, float_format="{:.4g}".format),
                f"k = {self.k_}: {self.estimate_.value:.4g}, standard error {self.se_:.3g}, "
                f"{self.level:.0%} interval {low:.4g} to {high:.4g} (conditional on k)",
            ]
        )

    def _check_settings(self) -> list[int]:
        if not 0 < self.level < 1:
            raise InvalidSetting(f"level is {self.level}", "it lies strictly between 0 and 1")
        return whole_numbers(self.k)


def whole_numbers(k: int | str | Iterable[int]) -> list[int]:
    """The values of k that are meant, in order.

    Raises:
        InvalidSetting: If k is not ``lepski``, a whole number of at least 0, or several.
    """
    if isinstance(k, str) and k == "lepski":
        return list(range(LARGEST_K + 1))
    wrong = InvalidSetting(f"k is {k!r}", "give a whole number of at least 0, several, or lepski")
    if isinstance(k, str):
        raise wrong
    ks = sorted(set(k)) if isinstance(k, Iterable) else [k]
    if not ks or any(isinstance(one, bool) or one != int(one) or one < 0 for one in ks):
        raise wrong
    return [int(one) for one in ks]


def choose(found: Sequence[Truncated], constant: float = 1.5) -> int:
    """Lepski's rule: the smallest k that no larger one differs from by more than noise.

    Differences are held against their own standard errors, from the differences of contributions.
    """
    for place, item in enumerate(found):
        if all(_alike(item, later, constant) for later in found[place + 1 :]):
            return item.k
    raise InvalidSetting("no k was given", "give at least one")


def _alike(one: Truncated, later: Truncated, constant: float) -> bool:
    steps = later.influence.shape[-1]
    difference = later.influence - one.influence[..., :steps]
    error = np.sqrt(long_run_variance(difference, bandwidth(steps, later.k)) / steps)
    return bool(abs(float(later.value) - float(one.value)) <= constant * float(error))


def _row(item: Truncated, level: float) -> dict[str, float]:
    low, high = item.estimate.interval(level)
    return {
        "k": item.k,
        "estimate": float(item.value),
        "std_error": float(item.std_error),
        "low": low,
        "high": high,
    }
