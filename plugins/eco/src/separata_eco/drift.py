"""Whether successive rounding errors are alike, which is what ECO relies on when the new one stands for the old."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from statistics import fmean
from typing import Any, Self

import torch
from torch import Tensor, nn

from .conversion import convert_, quantised
from .errors import InvalidSetting
from .optimizers import ECOAdamW
from .parameter import QuantizedParameter

Loss = Callable[[Any, Any], Tensor]


def next_token_loss(model: Any, ids: Tensor) -> Tensor:
    """Cross-entropy of a causal decoder of transformers on a ``batch x length`` tensor of tokens."""
    loss: Tensor = model(ids, labels=ids).loss
    return loss


class ErrorDrift:
    """Train a copy of a model for a few steps and compare each weight's rounding errors of successive steps.

    ``norm_ratio`` is ``|e'| / |e|`` and ``cosine`` that of the angle between e and e', as means over the steps. With a
    ratio near 1, momentum carries about as much as it owes. The cosine says how far the new error equals the old one:
    it is high where weights move by much less than a grid step, and falls to 0 where they cross several.

    Args:
        model: A model without quantised weights, or with; it is copied and not changed.
        loss: Of the model on one batch.
        quantizer: As for ``convert_``, if nothing is quantised yet.
        granularity: As for ``convert_``.
        lr: Learning rate.
        rounding: ``stochastic`` or ``nearest_even``.
        compensation: As for ``ECOAdamW``.
        seed: Of the draws.

    Attributes:
        rows_: One row a weight: name, norm_ratio, cosine, and the error's root mean square over the weight's.
        norm_ratio_: Mean over weights, by their numbers.
        cosine_: Mean over weights, by their numbers.
    """

    rows_: list[dict[str, Any]]
    norm_ratio_: float
    cosine_: float

    def __init__(
        self,
        model: nn.Module,
        loss: Loss = next_token_loss,
        *,
        quantizer: str = "fp8_e4m3",
        granularity: str | int | None = None,
        lr: float = 1e-3,
        rounding: Any = "stochastic",
        compensation: Any = "eco",
        seed: int = 0,
    ) -> None:
        self.model = model
        self.loss = loss
        self.quantizer = quantizer
        self.granularity = granularity
        self.lr = lr
        self.rounding = rounding
        self.compensation = compensation
        self.seed = seed

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

    def fit(self, batches: Sequence[Any]) -> Self:
        """Take one step for each batch.

        Args:
            batches: At least three, in the form that ``loss`` takes.

        Raises:
            InvalidSetting: If there are fewer.
        """
        if len(batches) < 3:
            raise InvalidSetting(f"{len(batches)} batches", "errors of successive steps need at least three")
        model = deepcopy(self.model)
        if not quantised(model):
            convert_(model, quantizer=self.quantizer, granularity=self.granularity)
        followed = _Followed()
        optimizer = ECOAdamW(
            model.parameters(),
            self.lr,
            rounding=self.rounding,
            compensation=self.compensation,
            seed=self.seed,
        )
        optimizer.recorder = followed
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            self.loss(model, batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        weights = {name: weight for name, weight in quantised(model).items() if id(weight) in followed.sums}
        self.rows_ = [{"weight": name, **followed.means(weight)} for name, weight in weights.items()]
        sizes = [weight.numel() for weight in weights.values()]
        self.norm_ratio_ = fmean([row["norm_ratio"] for row in self.rows_], sizes)
        self.cosine_ = fmean([row["cosine"] for row in self.rows_], sizes)
        return self


class _Followed:
    """Sums over the steps, of each weight; of its errors only the last one is kept."""

    def __init__(self) -> None:
        self.last: dict[int, Tensor] = {}
        self.sums: dict[int, Tensor] = {}

    def __call__(self, weight: QuantizedParameter, error: Tensor) -> None:
        """Take the error of one step."""
        before = self.last.get(id(weight))
        self.last[id(weight)] = error
        if before is None or not bool(before.any()):
            return
        norm, earlier = error.norm().double(), before.norm().double()
        cosine = (error * before).sum().double() / (norm * earlier).clamp(min=torch.finfo(torch.float64).tiny)
        relative = norm / weight.dequantize(error.dtype).norm().double()
        found = torch.stack([norm / earlier, cosine, relative, torch.ones_like(norm)])
        self.sums[id(weight)] = self.sums.get(id(weight), torch.zeros_like(found)) + found

    def means(self, weight: QuantizedParameter) -> dict[str, float]:
        """Means over the steps."""
        *sums, steps = self.sums[id(weight)].tolist()
        return dict(
            zip(("norm_ratio", "cosine", "relative_error"), (value / steps for value in sums), strict=True)
        )
