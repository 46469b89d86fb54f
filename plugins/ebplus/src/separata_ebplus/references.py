"""Slow twins of the closed forms that decide what is right: roots and optima by bracketing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw, ndtr

# The slope that the finite difference takes, in units of the squared rate.
RELATIVE_SLOPE = 1e-5


def theta0_reference(completion_rate: Any, alpha_prefill: Any, alpha_decode: Any) -> Any:
    """The threshold through Lambert's W: ``1 + 1 / W_{-1}(-exp(-1 - c))``, good where c is neither tiny nor huge."""
    rate, prefill, decode = _arrays(completion_rate, alpha_prefill, alpha_decode)
    return _like(completion_rate, 1 + 1 / lambertw(-np.exp(-1 - rate * prefill / decode), -1).real)


def delta_theta_reference(
    completion_rate: Any,
    hazard_slope: Any,
    alpha_prefill: Any,
    alpha_decode: Any,
    beta_decode: Any,
    slots: Any,
) -> Any:
    """Slope times the derivative of the numerical optimum of the fluid model, by central differences."""
    columns = np.broadcast_arrays(
        *_arrays(completion_rate, hazard_slope, alpha_prefill, alpha_decode, beta_decode, slots)
    )
    found = np.array([_difference(*row) for row in zip(*(c.ravel() for c in columns), strict=True)])
    return _like(completion_rate, found.reshape(columns[0].shape))


def fluid_optimum(
    rate: float, slope: float, alpha_prefill: float, alpha_decode: float, beta_decode: float, slots: float
) -> float:
    """The threshold with the least time a request when n' = -(rate + slope t) n, by a root of the derivative."""

    def excess(theta: float) -> float:
        z = -np.log1p(-theta)
        end = _phase_end(rate, slope, z)
        hazard = rate + slope * end
        # d/dtheta of (alpha_p + alpha_d t + beta_d int n dt) / theta, times theta^2.
        speed = 1 / ((1 - theta) * hazard)
        grown = theta * (alpha_decode + beta_decode * slots * (1 - theta)) * speed
        return float(
            grown - alpha_prefill - alpha_decode * end - beta_decode * _area(rate, slope, end, slots)
        )

    return float(brentq(excess, 1e-6, 1 - 1e-6, xtol=1e-15, rtol=1e-14))


def safe_batch_reference(capacity: Any, footprint_mean: Any, footprint_std: Any, overflow: Any = 1e-3) -> Any:
    """The concurrency at which the normal tail has the given probability, by bracketing."""
    columns = np.broadcast_arrays(*_arrays(capacity, footprint_mean, footprint_std, overflow))

    def root(most: float, mean: float, std: float, tail: float) -> float:
        def excess(n: float) -> float:
            return float(ndtr((n * mean - most) / (np.sqrt(n) * std)) - tail)

        return float(brentq(excess, 1e-9, most / mean, xtol=1e-12, rtol=1e-13))

    found = np.array([root(*row) for row in zip(*(c.ravel() for c in columns), strict=True)])
    return _like(capacity, found.reshape(columns[0].shape))


def crossover_reference(
    theta: Any, occupancy: Any, prompt_mean: Any, output_mean: Any, *constants: Any
) -> Any:
    """Difference of the two times a request, term by term, over the tokens of a request."""
    th, n, prompt, output, a_p, b_p, a_d, b_d, a_m, b_m = _arrays(
        theta, occupancy, prompt_mean, output_mean, *constants
    )
    decode_iterations = -np.log(1 - th) * output
    exclusive = (a_p + a_d * decode_iterations) / (th * n) + b_p * prompt + b_d * output
    mixed = a_m * (1 + output) / n + b_m * (prompt + output)
    return _like(theta, (mixed - exclusive) / (prompt + output))


def _difference(rate: float, slope: float, *others: float) -> float:
    step = RELATIVE_SLOPE * rate**2
    return slope * (fluid_optimum(rate, step, *others) - fluid_optimum(rate, -step, *others)) / (2 * step)


def _phase_end(rate: float, slope: float, z: float) -> float:
    """The time at which rate t + slope t^2 / 2 reaches z, in the form that does not cancel."""
    return float(2 * z / (rate + np.sqrt(rate**2 + 2 * slope * z)))


def _area(rate: float, slope: float, end: float, slots: float) -> float:
    """Integral of the running requests over the phase, by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    time = end * (nodes + 1) / 2
    return float(slots * end / 2 * (weights @ np.exp(-(rate * time + slope * time**2 / 2))))


def _arrays(*values: Any) -> list[Any]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def _like(argument: Any, result: Any) -> Any:
    if hasattr(argument, "detach"):
        import torch

        return torch.as_tensor(result)
    return float(result) if np.ndim(result) == 0 else result
