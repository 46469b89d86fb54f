"""The model does what its definition says."""

import torch
from separata_nile.config import NileConfig
from separata_nile.model import LinearModel


def test_more_strength_damps_more() -> None:
    rows = torch.ones(1, 3)
    model = LinearModel(NileConfig(strength=1.0))
    assert torch.allclose(model(rows), rows @ model.weight / 2)
