"""What every model keeps: it is its config and its tensors, and nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import nn

from separata import config as configs
from separata.records import Offer
from separata.registry import load_object

from .checks import NotOffered, leaves, need, same, suite
from .examples import ModelExample

PLAIN = {".safetensors", ".json"}


@attrs.frozen
class ModelSubject:
    """A model class on trial, with a small config of it."""

    model: Any
    example: ModelExample

    def build(self) -> nn.Module:
        """The model with its parameters drawn from one seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            built: nn.Module = self.model(self.example.config).eval()
        return built

    def arguments(self) -> tuple[Any, ...]:
        """The example's arguments of ``forward``."""
        return self.example.inputs(torch.Generator().manual_seed(0))


def builds_from_its_config(subject: ModelSubject) -> None:
    """The model keeps its config, which survives being written down and read again."""
    built = subject.build()
    config = subject.example.config
    need(getattr(built, "config", None) == config, "its .config is not the config that it was built from")
    again = configs.resolve(type(config), overrides=configs.dump(config)).value
    need(again == config, f"its config comes back as {again}")


def builds_on_meta(subject: ModelSubject) -> None:
    """On the meta device it has the same parameters, and no memory."""
    with torch.device("meta"):
        shell = subject.model(subject.example.config)
    real = [parameter for name, parameter in shell.named_parameters() if parameter.device.type != "meta"]
    need(not real, f"{len(real)} parameters are allocated although the device is meta")
    need(_shapes(shell) == _shapes(subject.build()), "its parameters on meta differ from those on the CPU")


def comes_back_from_its_folder(subject: ModelSubject) -> None:
    """Saved and loaded, it has the same tensors and gives the same results, bit for bit."""
    built = subject.build()
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder) / "model")  # type: ignore[operator]
        again = subject.model.load(Path(folder) / "model").eval()
    need(same(dict(built.state_dict()), dict(again.state_dict())), "its tensors differ after loading")
    with torch.no_grad():
        arguments = subject.arguments()
        need(same(built(*arguments), again(*arguments)), "its results differ after loading")


def keeps_tied_weights(subject: ModelSubject) -> None:
    """Parameters that share memory still do after loading."""
    built = subject.build()
    ties = _ties(built)
    if not ties:
        raise NotOffered("no parameters are tied")
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder) / "model")  # type: ignore[operator]
        need(_ties(subject.model.load(Path(folder) / "model")) == ties, "tied parameters come apart")


def saves_no_pickle(subject: ModelSubject) -> None:
    """What it saves is safetensors and JSON."""
    with tempfile.TemporaryDirectory() as folder:
        subject.build().save(Path(folder) / "model")  # type: ignore[operator]
        files = [path for path in (Path(folder) / "model").rglob("*") if path.is_file()]
    need(files, "it saves nothing")
    other = sorted(path.name for path in files if path.suffix not in PLAIN)
    need(not other, f"it saves {', '.join(other)}")


def leaves_arguments_unchanged(subject: ModelSubject) -> None:
    """The forward pass changes none of its arguments."""
    arguments = subject.arguments()
    before = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves(arguments)]
    with torch.no_grad():
        subject.build()(*arguments)
    need(same(before, leaves(arguments)), "it changes an argument in place")


def subject(slug: str, offer: Offer, example: ModelExample) -> ModelSubject:
    """The model class that an offer names."""
    return ModelSubject(load_object(offer.object, slug), example)


CHECKS = suite(
    builds_from_its_config,
    builds_on_meta,
    comes_back_from_its_folder,
    keeps_tied_weights,
    saves_no_pickle,
    leaves_arguments_unchanged,
)


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _ties(model: nn.Module) -> list[list[str]]:
    shared: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        shared.setdefault(id(parameter), []).append(name)
    return sorted(names for names in shared.values() if len(names) > 1)
