"""What 4-bit blocks would make of tensors: signal over noise of each method, grids taken, crest factors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .blocks import SCHEMES
from .errors import InvalidSetting, NothingToQuantise
from .quantizer import fake_quantize, quantize
from .tensor import MixFP4Tensor
from .theory import crossover, decibels, floating_error, uniform_error

Array = NDArray[np.float64]


class CrestFactorReport:
    """Crest factors of blocks, and what they say about the grids.

    Args:
        methods: Which methods are compared.
        group: Elements of a block.
        bins: Of the histogram, from 1 to ``sqrt(group)``, the largest crest factor there is.
        pad: Whether to fill up rows that are no multiple of ``group``.

    Attributes:
        rows_: One mapping a tensor: ``tensor``, ``elements``, QSNR in dB by method, ``predicted`` QSNR of the better
            grid by the theory for a Gaussian body, ``uniform`` (share of blocks on the uniform grid), ``below``
            (share of blocks whose crest factor is below the crossover), percentiles of the crest factor, and
            ``empty`` blocks: those that hold zeros or become zeros.
        histograms_: Share of blocks in each bin, by tensor.
        edges_: Edges of the bins.

    Example:
        >>> report = CrestFactorReport().fit({"x": torch.randn(64, 256)})
        >>> report.rows_[0]["mixfp4"] >= report.rows_[0]["nvfp4"]
        True
    """

    def __init__(
        self,
        *,
        methods: tuple[str, ...] = tuple(SCHEMES),
        group: int = 16,
        bins: int = 60,
        pad: bool = False,
    ) -> None:
        self.methods = methods
        self.group = group
        self.bins = bins
        self.pad = pad

    def fit(self, tensors: Mapping[str, Tensor | MixFP4Tensor], y: object = None) -> Self:
        """Measure tensors.

        Args:
            tensors: By name: floating ones of at least one dimension, or stored ones, which have no noise to measure.
            y: Ignored.

        Raises:
            NothingToQuantise: If there is none.
            NonFinite: If one holds NaN or infinity.
            GroupMismatch: If blocks do not fill the rows and ``pad`` is not set.
        """
        if not tensors:
            raise NothingToQuantise("there is no tensor", "give at least one")
        self.edges_: Array = np.linspace(1.0, self.group**0.5, self.bins + 1)
        self.rows_: list[dict[str, Any]] = []
        self.histograms_: dict[str, Array] = {}
        for name, tensor in tensors.items():
            self._measure(name, tensor)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change constructor parameters and return self."""
        unknown = set(params) - set(self.get_params())
        if unknown:
            raise InvalidSetting(
                f"there is no parameter {', '.join(sorted(unknown))}",
                f"parameters are {', '.join(self.get_params())}",
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _measure(self, name: str, tensor: Tensor | MixFP4Tensor) -> None:
        noise: dict[str, float] = {}
        if isinstance(tensor, MixFP4Tensor):
            stored, x = tensor, tensor.dequantize()
        else:
            stored, x = quantize(tensor, group=self.group, pad=self.pad), tensor
            noise = {method: qsnr(x, method, group=self.group, pad=self.pad) for method in self.methods}
        crest, energy = crest_factors(x, self.group)
        counts, _ = np.histogram(crest.clamp(1, self.group**0.5).numpy(), self.edges_)
        self.histograms_[name] = counts / max(len(crest), 1)
        percentiles = np.percentile(crest.numpy(), (10, 50, 90)) if len(crest) else (np.nan,) * 3
        live = ~stored.empty_blocks
        self.rows_.append(
            {
                "tensor": name,
                "elements": x.numel(),
                **{method: noise.get(method) for method in self.methods},
                "predicted": predicted_qsnr(crest, energy, self.group),
                "uniform": float(stored.uniform[live].double().mean()) if live.any() else 0.0,
                "below": float((crest < crossover(self.group)).double().mean()) if len(crest) else 0.0,
                **{f"crest_{at}": float(value) for at, value in zip((10, 50, 90), percentiles, strict=True)},
                "empty": int(stored.empty_blocks.sum()),
            }
        )


def qsnr(x: Tensor, method: str, **options: Any) -> float:
    """Signal over quantisation noise of a tensor, in dB.

    Args:
        x: A floating tensor.
        method: As for ``fake_quantize``.
        options: Its other arguments.
    """
    return decibels(squared_error(x, method, **options) / max(float(x.double().square().sum()), 1e-300))


def squared_error(x: Tensor, method: str, **options: Any) -> float:
    """Sum of squared errors of a tensor, in float64.

    Args:
        x: A floating tensor.
        method: As for ``fake_quantize``.
        options: Its other arguments.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return float((fake_quantize(wide, method=method, **options).double() - wide.double()).square().sum())


def crest_factors(x: Tensor, group: int = 16) -> tuple[Tensor, Tensor]:
    """Crest factor and energy of each block that is not zero.

    Args:
        x: A ``... x K`` floating tensor; the last block of a row may be short.
        group: Elements of a block.

    Returns:
        Two float64 tensors of the same length.
    """
    wide = torch.nn.functional.pad(x.detach().double(), (0, -x.shape[-1] % group)).reshape(-1, group)
    energy = wide.square().sum(-1)
    found = energy > 0
    crest = wide[found].abs().amax(-1) / (energy[found] / group).sqrt()
    return crest, energy[found]


def predicted_qsnr(crest: Tensor, energy: Tensor, group: int = 16) -> float:
    """QSNR in dB that the theory gives blocks of these crest factors on the better grid of each.

    Args:
        crest: Crest factor of each block.
        energy: Sum of squares of each block.
        group: Elements of a block.
    """
    if not len(crest):
        return float("inf")
    at = np.linspace(1.0, group**0.5, 400)
    errors = [min(uniform_error(value, group), floating_error(value, group)) for value in at]
    relative = np.interp(crest.numpy(), at, errors)
    return decibels(float((relative * energy.numpy()).sum() / energy.sum()))
