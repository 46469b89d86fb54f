"""A linear map, a working example of a model: put the paper's network here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from separata import artifacts
from separata.config import dump, resolve

from .config import NileConfig

if TYPE_CHECKING:
    from separata import Placement


class LinearModel(nn.Module):
    """Multiplies rows by a square matrix, damped by the strength.

    Args:
        config: The settings.
    """

    def __init__(self, config: NileConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(3, 3).normal_())

    def forward(self, rows: Tensor) -> Tensor:
        """Map rows.

        Args:
            rows: A `batch x 3` tensor.

        Returns:
            A `batch x 3` tensor.
        """
        return rows @ self.weight / (1 + self.config.strength)

    def save(self, folder: Path) -> None:
        """Write safetensors and config.json."""
        artifacts.save(folder, slug="nile", kind="model", tensors=self.state_dict(), config=dump(self.config))

    @classmethod
    def load(cls, folder: Path, placement: Placement | None = None) -> Self:
        """Build the model again from what ``save`` wrote, on the placement's device."""
        device = str(placement.device()) if placement else "cpu"
        saved = artifacts.load(folder, slug="nile", kind="model", device=device)
        model = cls(resolve(NileConfig, overrides=saved.config).value).to(device)
        model.load_state_dict(saved.tensors)
        return model
