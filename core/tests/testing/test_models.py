"""Each check of a model catches the fault it is for, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import attrs
import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from separata.testing.conformance import Case
from separata.testing.examples import ModelExample
from separata.testing.models import CHECKS, ModelSubject


@attrs.frozen
class TwoLayersConfig:
    width: int = 4


class TwoLayers(nn.Module):
    """A right model: two layers with tied weights."""

    def __init__(self, config: TwoLayersConfig) -> None:
        super().__init__()
        self.config = config
        self.first = nn.Linear(config.width, config.width, bias=False)
        self.second = nn.Linear(config.width, config.width, bias=False)
        self.tie()

    def tie(self) -> None:
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        save_model(self, str(folder / "model.safetensors"))
        (folder / "config.json").write_text(json.dumps(attrs.asdict(self.config)))

    @classmethod
    def load(cls, folder: Path, placement: Any = None) -> Self:
        model = cls(TwoLayersConfig(**json.loads((folder / "config.json").read_text())))
        load_model(model, str(folder / "model.safetensors"))
        return model


class ForgetsItsConfig(TwoLayers):
    def __init__(self, config: TwoLayersConfig) -> None:
        super().__init__(config)
        self.config = TwoLayersConfig(width=config.width + 1)

    def save(self, folder: Path) -> None:
        config, self.config = self.config, TwoLayersConfig(width=self.config.width - 1)
        super().save(folder)
        self.config = config


class AllocatesOnMeta(TwoLayers):
    def tie(self) -> None:
        super().tie()
        self.shift = nn.Parameter(torch.zeros(2, device="cpu"))


class LosesAValue(TwoLayers):
    @classmethod
    def load(cls, folder: Path, placement: Any = None) -> Self:
        model = super().load(folder)
        with torch.no_grad():
            model.first.weight[0, 0] += 1
        return model


class ComesApart(TwoLayers):
    @classmethod
    def load(cls, folder: Path, placement: Any = None) -> Self:
        model = super().load(folder)
        model.second.weight = nn.Parameter(model.first.weight.detach().clone())
        return model


class Pickles(TwoLayers):
    def save(self, folder: Path) -> None:
        super().save(folder)
        torch.save(self.state_dict(), folder / "model.bin")


class ChangesItsArgument(TwoLayers):
    def forward(self, x: Tensor) -> Tensor:
        result = super().forward(x)
        x.zero_()
        return result


def failures(model: type[TwoLayers]) -> list[str]:
    example = ModelExample(
        config=TwoLayersConfig(), inputs=lambda generator: (torch.randn(3, 4, generator=generator),)
    )
    return [
        check.name
        for check in CHECKS
        if Case("model", "toy", check, ModelSubject(model, example)).run().state == "failed"
    ]


@pytest.mark.parametrize(
    ("model", "caught"),
    [
        (TwoLayers, []),
        (ForgetsItsConfig, ["builds-from-its-config"]),
        (AllocatesOnMeta, ["builds-on-meta"]),
        (LosesAValue, ["comes-back-from-its-folder"]),
        (ComesApart, ["keeps-tied-weights"]),
        (Pickles, ["saves-no-pickle"]),
    ],
)
def test_a_fault_fails_exactly_its_check(model: type[TwoLayers], caught: list[str]) -> None:
    assert failures(model) == caught


def test_a_forward_pass_that_changes_its_argument_is_caught() -> None:
    # The second pass of the round-trip check meets the changed argument, so that check sees it too.
    assert "leaves-arguments-unchanged" in failures(ChangesItsArgument)
