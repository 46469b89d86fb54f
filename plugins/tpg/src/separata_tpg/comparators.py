"""What the field uses instead: difference in means, Q values of a stationary chain, a switchback's burn-in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter
from statsmodels.regression.linear_model import OLS

from separata.estimates import Estimate

from .longrun import bandwidth

Array = NDArray[np.float64]


def difference_in_means(outcomes: ArrayLike, arms: ArrayLike) -> Estimate:
    """Mean under treatment minus mean under control, with statsmodels' HAC standard error; both of shape (T,)."""
    treated = np.asarray(arms, np.float64)
    design = np.column_stack([np.ones_like(treated), treated])
    fitted = OLS(np.asarray(outcomes, np.float64), design).fit(
        cov_type="HAC", cov_kwds={"maxlags": bandwidth(len(treated), 0)}
    )
    return Estimate(float(fitted.params[1]), float(fitted.bse[1]))


def burn_in_switchback(outcomes: ArrayLike, arms: ArrayLike, block: int, burn_in: int) -> Estimate:
    """Difference in means of blocks, without the first ``burn_in`` steps of each; shape (T,) in steps."""
    whole = len(np.asarray(arms)) // block * block
    values = np.asarray(outcomes, np.float64)[:whole].reshape(-1, block)[:, burn_in:].mean(1)
    return difference_in_means(values, np.asarray(arms, np.float64)[:whole:block])


def stationary_dq(
    outcomes: ArrayLike, arms: ArrayLike, states: ArrayLike, *, trace: float = 0.0, ridge: float = 1.0
) -> float:
    """Difference in Q values as if the chain were stationary.

    LSTD(lambda) finds the value of the mixed policy against its average; the estimate is the arms' difference in
    outcome plus value of the next state.

    Args:
        outcomes: Shape (T,).
        arms: 0 or 1, shape (T,).
        states: Features of the state before each step and after the last, shape (T + 1, d); one-hot for a finite one.
        trace: Lambda.
        ridge: Weight of the ridge penalty.
    """
    values, treated = np.asarray(outcomes, np.float64), np.asarray(arms, np.float64)
    features = np.asarray(states, np.float64)
    worth = features[1:] @ _lstd(values - values.mean(), features, trace, ridge)
    total = values + worth
    return float(total[treated == 1].mean() - total[treated == 0].mean())


def lstd_difference(outcomes: ArrayLike, arms: ArrayLike, states: ArrayLike, *, ridge: float = 1.0) -> float:
    """Difference of the arms' average rewards, each from LSTD on the steps under that arm.

    For each arm average reward and relative values solve ``E[z (y - g + f(s') v - f(s) v)] = 0`` with instruments
    ``z = (1, f(s))``; arguments as of ``stationary_dq``.
    """
    values, treated = np.asarray(outcomes, np.float64), np.asarray(arms, np.float64)
    features = np.asarray(states, np.float64)
    averages = []
    for arm in (1, 0):
        chosen = treated == arm
        before, after = features[:-1][chosen], features[1:][chosen]
        instruments = np.column_stack([np.ones(len(before)), before])
        design = np.column_stack([np.ones(len(before)), before - after])
        penalty = ridge * np.diag([0.0, *np.ones(features.shape[1])])
        solved = np.linalg.solve(instruments.T @ design + penalty, instruments.T @ values[chosen])
        averages.append(solved[0])
    return float(averages[0] - averages[1])


def _lstd(rewards: Array, features: Array, trace: float, ridge: float) -> Array:
    eligibility = features[:-1]
    if trace:
        eligibility = lfilter([1], [1, -trace], eligibility, axis=0)
    matrix = eligibility.T @ (features[:-1] - features[1:]) + ridge * np.eye(features.shape[1])
    return np.asarray(np.linalg.solve(matrix, eligibility.T @ rewards))
