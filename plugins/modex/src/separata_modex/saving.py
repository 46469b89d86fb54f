"""A modexified network in a folder, as safetensors and JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from separata import artifacts
from separata.errors import PackageMissing

from .errors import InvalidSetting
from .head import MoDEXNetwork, modexify


def save_network(
    network: MoDEXNetwork, folder: Path | str, *, extra: Mapping[str, Any] | None = None
) -> None:
    """Write what ``modexify`` made, with the configuration of a transformers model if it is one.

    Args:
        network: What is written.
        folder: Written whole or not at all.
        extra: Whatever belongs to it, as plain JSON values.
    """
    config = {
        "hidden": network.head.hidden,
        "spectral": network.head.spectral,
        "transformers": _configuration(network.backbone),
    }
    tensors = network.state_dict()
    artifacts.save(folder, slug="modex", kind="network", tensors=tensors, config=config, extra=extra)


def load_network(folder: Path | str, model: nn.Module | None = None, *, device: str = "cpu") -> MoDEXNetwork:
    """Read a network that ``save_network`` wrote, ready to predict.

    Args:
        folder: What was written.
        model: The classifier as it was built, before ``modexify``, whose parameters are replaced; or a
            ``MoDEXNetwork``. A transformers model for sequence classification is built from the folder itself.
        device: Where the network is put.

    Raises:
        ArtifactError: If the folder holds no such network.
        InvalidSetting: If there is no model, or one of another shape.
        PackageMissing: If the folder holds a transformers model and transformers is not installed.
    """
    found = artifacts.load(folder, slug="modex", kind="network")
    if model is None:
        model = _transformers_model(found.config["transformers"], folder)
    network = model
    if not isinstance(network, MoDEXNetwork):
        network = modexify(model, hidden=found.config["hidden"], spectral=found.config["spectral"])
    try:
        # assign keeps the dtypes that were saved; sums of MKL depend on how memory is aligned, and clones are as
        # torch aligns its own.
        tensors = {name: tensor.clone() for name, tensor in found.tensors.items()}
        network.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InvalidSetting(
            f"the model does not fit {folder}: {reason}", "give the classifier as it was before modexify"
        ) from error
    return network.to(device).eval()


def _configuration(backbone: nn.Module) -> dict[str, Any] | None:
    config: Any = getattr(backbone, "config", None)
    if not hasattr(config, "to_json_string"):
        return None
    plain: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return plain


def _transformers_model(config: dict[str, Any] | None, folder: Path | str) -> nn.Module:
    if config is None:
        raise InvalidSetting(
            f"{folder} holds parameters of a torch module and not how to build it", "give the model too"
        )
    try:
        from transformers import AutoConfig, AutoModelForSequenceClassification
    except ImportError as error:
        raise PackageMissing.extra("transformers", "separata-modex[llm]") from error
    settings = dict(config)
    built: nn.Module = AutoModelForSequenceClassification.from_config(  # type: ignore[no-untyped-call]
        AutoConfig.for_model(settings.pop("model_type"), **settings)
    )
    return built
