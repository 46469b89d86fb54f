"""The five protocols. Static contracts: a plugin need not inherit, and nothing decides by ``isinstance``.

An offer's kind says which protocol it keeps; the conformance kit checks shape and behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from torch import Tensor

    from .placement import Placement


class Model(Protocol):
    """A ``torch.nn.Module`` built from a frozen attrs config; it builds on the ``meta`` device too."""

    config: Any

    def save(self, folder: Path) -> None:
        """Write safetensors and config.json."""

    @classmethod
    def load(cls, folder: Path, placement: Placement | None = None) -> Self:
        """Build the model again from what ``save`` wrote."""


class Trainer(Protocol):
    """Fits a model. Losses are (sum, count), so that any split over devices gives the same number."""

    def fit(
        self, model: Any, data: Any, *, placement: Placement | None = None, resume: Path | None = None
    ) -> Any:
        """Train, and report what happened."""


class Estimator(Protocol):
    """A method in scikit-learn's habits: parameters in ``__init__``, learned attributes end in ``_``."""

    def fit(self, *data: Any, **options: Any) -> Self:
        """Learn from data and return self."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""

    def set_params(self, **params: Any) -> Self:
        """Change constructor parameters and return self."""


class Kernel(Protocol):
    """A pure function of tensors; its slow float64 twin, named by the offer, decides what is right."""

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        """The fast path. It changes no argument and keeps their device."""


class Scheduler(Protocol):
    """Carries state from step to step and decides; what it decides uses only what it has seen."""

    def step(self, observation: Any = None) -> Any:
        """Take one observation, return one decision."""

    def state_dict(self) -> Mapping[str, Tensor | Any]:
        """Everything needed to go on from here."""

    def load_state_dict(self, state: Any) -> None:
        """Go on from a saved state."""
