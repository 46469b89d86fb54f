"""Closed forms of exclusive and mixed batching: threshold, its correction, crossover and safe concurrency.

Times may have any unit, the same throughout; `theta0` does not depend on it. All functions take floats, NumPy
arrays or tensors, which broadcast, and compute in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy.special import ndtri

from .errors import InvalidSetting

THETA_MIN, THETA_MAX = 0.02, 0.9
NEWTON_STEPS = 60
# Below this the series of expm1(z) - z is exact to 1e-16 and the difference itself is not.
SERIES_BELOW = 0.03


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of float64 arrays take floats, arrays or tensors, and give back the same kind."""

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        every = (*arguments, *options.values())
        like = next((value for value in every if hasattr(value, "detach")), None)
        result = function(*map(_array, arguments), **{name: _array(value) for name, value in options.items()})
        if like is not None:
            import torch

            return torch.as_tensor(result).to(device=like.device, dtype=like.dtype)
        return float(result) if np.ndim(result) == 0 else result

    return called


def _array(value: Any) -> Any:
    if hasattr(value, "detach"):
        value = value.detach().cpu().double().numpy()
    return np.asarray(value, dtype=np.float64)


def _positive(**values: Any) -> None:
    for name, value in values.items():
        if not (np.isfinite(value).all() and (value > 0).all()):
            raise InvalidSetting(f"{name} is {value}", f"{name} is positive and finite")


@_elementwise
def theta0(completion_rate: Any, alpha_prefill: Any, alpha_decode: Any) -> Any:
    """The share of slots to let become free before a prefill phase, for a constant completion rate.

    Solves ``theta / (1 - theta) + ln(1 - theta) = rate * alpha_prefill / alpha_decode`` (EB+, optimal threshold).

    Args:
        completion_rate: Probability that a running request ends in one decode iteration, 1 / mean output length.
        alpha_prefill: Fixed time of a prefill iteration.
        alpha_decode: Fixed time of a decode iteration.

    Returns:
        The threshold, from 0 (excluded) to 1.

    Raises:
        InvalidSetting: If an argument is not positive and finite.

    >>> round(theta0(1 / 256, 30.0, 12.0), 4)
    0.1306
    """
    _positive(completion_rate=completion_rate, alpha_prefill=alpha_prefill, alpha_decode=alpha_decode)
    cost = completion_rate * alpha_prefill / alpha_decode
    # With z = -ln(1 - theta) the equation is expm1(z) - z = cost: convex and rising, so that Newton's steps from
    # an upper bound fall monotonically onto the root. Both bounds below hold for every cost.
    z = np.minimum(np.sqrt(2 * cost), np.log1p(cost + np.sqrt(2 * cost)))
    for _ in range(NEWTON_STEPS):
        step = (_excess(z) - cost) / np.expm1(z)
        z = z - step
        if (np.abs(step) <= 1e-15 * z).all():
            break
    return -np.expm1(-z)


def _excess(z: Any) -> Any:
    series = z * z / 2 * (1 + z / 3 * (1 + z / 4 * (1 + z / 5 * (1 + z / 6 * (1 + z / 7)))))
    return np.where(z < SERIES_BELOW, series, np.expm1(z) - z)


@_elementwise
def delta_theta(
    completion_rate: Any,
    hazard_slope: Any,
    alpha_prefill: Any,
    alpha_decode: Any,
    beta_decode: Any,
    slots: Any,
) -> Any:
    """First-order change of the threshold when the completion rate rises within a decode phase.

    The rate is ``completion_rate + hazard_slope * t``, t in decode iterations since the phase began (EB+, increasing
    hazard). The error is of second order in the slope.

    Args:
        completion_rate: The rate at the start of a phase.
        hazard_slope: Its growth in one decode iteration.
        alpha_prefill: Fixed time of a prefill iteration.
        alpha_decode: Fixed time of a decode iteration.
        beta_decode: Time of each further token in a decode iteration.
        slots: Number of concurrent requests.

    Returns:
        What is to be added to `theta0`.
    """
    theta = _array(theta0(completion_rate, alpha_prefill, alpha_decode))
    z = -np.log1p(-theta)
    bracket = z * (theta / (1 - theta) - z / 2) + beta_decode * slots / alpha_decode * (z - theta)
    return hazard_slope * (1 - theta) ** 2 / (completion_rate**2 * theta) * bracket


def threshold(
    completion_rate: float,
    hazard_slope: float,
    alpha_prefill: float,
    alpha_decode: float,
    beta_decode: float,
    slots: int,
) -> tuple[float, int]:
    """The threshold in force, clipped to 0.02 to 0.9, and the number of free slots ``k`` that it means.

    Args: as those of `delta_theta`.
    """
    theta = theta0(completion_rate, alpha_prefill, alpha_decode)
    if hazard_slope:
        theta += delta_theta(completion_rate, hazard_slope, alpha_prefill, alpha_decode, beta_decode, slots)
    theta = min(max(theta, THETA_MIN), THETA_MAX)
    return theta, max(1, math.floor(theta * slots))


def prefill_iterations(k: int, prompt_mean: float, token_budget: int) -> float:
    """Mean iterations of a prefill phase: one, or more if the prompts of ``k`` requests exceed the budget of one.

    The paper's closed forms count the fixed cost of a prefill once a phase; multiply it by this where phases are
    chunked. The last of several iterations is half full on average.
    """
    return max(1.0, k * prompt_mean / token_budget + 0.5)


@_elementwise
def exclusive_seconds(
    theta: Any,
    slots: Any,
    prompt_mean: Any,
    output_mean: Any,
    alpha_prefill: Any,
    beta_prefill: Any,
    alpha_decode: Any,
    beta_decode: Any,
) -> Any:
    """Time a request under exclusive batching at saturation; its inverse is the throughput in requests.

    ``(alpha_p + alpha_d * z * mu_O) / k + beta_p * mu_L + beta_d * mu_O`` with ``k = theta * slots`` (EB+, EB(k)).
    """
    fixed = alpha_prefill - alpha_decode * np.log1p(-theta) * output_mean
    return fixed / (theta * slots) + beta_prefill * prompt_mean + beta_decode * output_mean


@_elementwise
def mixed_seconds(slots: Any, prompt_mean: Any, output_mean: Any, alpha_mixed: Any, beta_mixed: Any) -> Any:
    """Time a request under mixed batching at saturation: ``alpha (1 + mu_O) / N + beta (mu_L + mu_O)``."""
    return alpha_mixed * (1 + output_mean) / slots + beta_mixed * (prompt_mean + output_mean)


@_elementwise
def crossover(
    theta: Any,
    occupancy: Any,
    prompt_mean: Any,
    output_mean: Any,
    alpha_prefill: Any,
    beta_prefill: Any,
    alpha_decode: Any,
    beta_decode: Any,
    alpha_mixed: Any,
    beta_mixed: Any,
) -> Any:
    """Time a token by which exclusive batching beats mixed batching; mixed batching wins where it is negative.

    Args:
        theta: The threshold.
        occupancy: Requests that really run, not slots: at light load the fixed costs decide, for mixed batching.
        prompt_mean: Mean prompt length in tokens.
        output_mean: Mean output length in tokens.
        alpha_prefill: Fixed time of a prefill iteration.
        beta_prefill: Time a token of a prefill iteration.
        alpha_decode: Fixed time of a decode iteration.
        beta_decode: Time a token of a decode iteration.
        alpha_mixed: Fixed time of a mixed iteration.
        beta_mixed: Time a token of a run of mixed batching, `TimingModel.effective_beta_mixed`.
    """
    tokens = prompt_mean + output_mean
    interference = beta_mixed - (beta_prefill * prompt_mean + beta_decode * output_mean) / tokens
    exclusive = (alpha_prefill - alpha_decode * np.log1p(-theta) * output_mean) / (theta * occupancy)
    mixed = alpha_mixed * (1 + output_mean) / occupancy
    return interference - (exclusive - mixed) / tokens


@_elementwise
def safe_batch(capacity: Any, footprint_mean: Any, footprint_std: Any, overflow: Any = 1e-3) -> Any:
    """The largest concurrency, before rounding down, whose caches overflow with at most a given probability.

    ``sqrt(N) = (-z s + sqrt(z^2 s^2 + 4 m M)) / (2 m)``: the normal approximation of the sum of N caches.

    Args:
        capacity: Tokens that the cache holds.
        footprint_mean: Mean tokens of one slot at a random time, see `footprint`.
        footprint_std: Their standard deviation.
        overflow: The probability, between 0 and 1/2.

    Raises:
        CapacityTooSmall: never; a result below one says that not even one request is safe.
        InvalidSetting: If an argument lies outside its range.
    """
    _positive(capacity=capacity, footprint_mean=footprint_mean)
    if not ((overflow > 0) & (overflow < 0.5)).all():
        raise InvalidSetting(f"overflow is {overflow}", "overflow lies between 0 and 0.5, such as 0.001")
    z = -ndtri(overflow)
    spread = z * footprint_std
    root = (-spread + np.sqrt(spread**2 + 4 * footprint_mean * capacity)) / (2 * footprint_mean)
    return root**2


def footprint(prompts: Any, outputs: Any) -> tuple[float, float]:
    """Mean and standard deviation of the tokens that one slot holds at a random time.

    Args:
        prompts: Prompt lengths of finished requests.
        outputs: Their output lengths. Long ones are met more often, which the moments account for.
    """
    prompt, output = _array(prompts), _array(outputs)
    total = output.sum()
    if not total > 0:
        raise InvalidSetting(
            "there are no output tokens", "give the lengths of at least one finished request"
        )
    first = (prompt * output + output * (output + 1) / 2).sum() / total
    second = (
        prompt**2 * output + prompt * output * (output + 1) + output * (output + 1) * (2 * output + 1) / 6
    ).sum() / total
    return float(first), math.sqrt(max(float(second - first**2), 0.0))
