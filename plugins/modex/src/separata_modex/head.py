"""The three heads, and how they take the place of a model's last linear layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from .distribution import ExtendedFlexibleDirichlet
from .errors import InvalidSetting, UnstableHead

SMALLEST = 1e-6
LARGEST_LOGIT = 10.0


class Evidence(NamedTuple):
    """Output of the heads, each ``(B, K)`` in float32 or float64."""

    concentration: Tensor
    advocacy: Tensor
    plausibility: Tensor

    @property
    def law(self) -> ExtendedFlexibleDirichlet:
        """The law that they describe."""
        return ExtendedFlexibleDirichlet(*self, validate_args=False)


class MoDEXHead(nn.Module):
    """Evidence, advocacy and plausibility from features.

    Args:
        in_features: Width E of the features.
        num_classes: K, at least 2.
        hidden: Width of the advocacy and plausibility networks.
        spectral: Whether each linear layer is spectrally normalised, as in the published runs.
        tied: One advocacy for all classes, which is F-EDL.

    Raises:
        InvalidSetting: If there are fewer than two classes.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        hidden: int = 128,
        spectral: bool = True,
        tied: bool = False,
    ) -> None:
        super().__init__()
        if num_classes < 2:
            raise InvalidSetting(f"num_classes is {num_classes}", "give at least 2")
        self.num_classes, self.hidden, self.spectral = num_classes, hidden, spectral
        self.concentration: nn.Module = linear(in_features, num_classes, spectral)
        self.advocacy = _network(in_features, hidden, 1 if tied else num_classes, spectral)
        self.plausibility = _network(in_features, hidden, num_classes, spectral)

    def forward(self, features: Tensor) -> Evidence:
        """Evidence of features ``(B, E)``; in float32 whatever autocast says, since exp overflows in float16.

        Raises:
            UnstableHead: If a head's output is not finite.
        """
        with torch.autocast(features.device.type, enabled=False):
            features = features.to(next(self.parameters()).dtype)
            logits = {}
            for name in ("concentration", "advocacy", "plausibility"):
                found = getattr(self, name)(features)
                logits[name] = found.to(torch.promote_types(found.dtype, torch.float32))
                if not logits[name].isfinite().all():
                    raise UnstableHead(
                        f"the {name} head gives NaN or infinity", "check the features, or train more slowly"
                    )
            concentration, advocacy = (
                logits[name].clamp(max=LARGEST_LOGIT).exp() + SMALLEST
                for name in ("concentration", "advocacy")
            )
            plausibility = logits["plausibility"].softmax(-1)
            return Evidence(concentration, advocacy.expand_as(plausibility), plausibility)


class MoDEXNetwork(nn.Module):
    """A backbone whose features go to the heads.

    Args:
        backbone: Gives features ``(B, E)``, or an output with them as ``logits``, as transformers' models do.
        head: The heads.
    """

    def __init__(self, backbone: nn.Module, head: MoDEXHead) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, *arguments: Any, **options: Any) -> Evidence:
        """Evidence for what the backbone takes.

        Raises:
            InvalidSetting: If ``labels`` are among it, for which transformers' models compute their own loss.
        """
        if "labels" in options:
            raise InvalidSetting(
                "the network takes no labels", "give them to modex_loss with the output's law"
            )
        features = self.backbone(*arguments, **options)
        found: Evidence = self.head(getattr(features, "logits", features))
        return found


def modexify(model: nn.Module, *, hidden: int = 128, spectral: bool = False) -> MoDEXNetwork:
    """Take a classifier's last linear layer as evidence head and put the two other heads beside it.

    Args:
        model: A torch module or a transformers model for sequence classification; it is changed in place.
        hidden: Width of the new heads' networks.
        spectral: Whether the new heads are spectrally normalised.

    Raises:
        InvalidSetting: If it has no linear layer below it.
    """
    found = [(name, part) for name, part in model.named_modules() if name and isinstance(part, nn.Linear)]
    if not found:
        raise InvalidSetting("the model has no linear layer to replace", "give a classifier that ends in one")
    name, last = found[-1]
    head = MoDEXHead(last.in_features, last.out_features, hidden=hidden, spectral=spectral)
    head.to(last.weight.device, torch.promote_types(last.weight.dtype, torch.float32))
    head.concentration = last.to(next(head.advocacy.parameters()).dtype)
    model.set_submodule(name, nn.Identity())
    return MoDEXNetwork(model, head)


def linear(inputs: int, outputs: int, spectral: bool) -> nn.Module:
    """A linear layer, spectrally normalised if asked for."""
    layer = nn.Linear(inputs, outputs)
    return spectral_norm(layer) if spectral else layer


def _network(inputs: int, hidden: int, outputs: int, spectral: bool) -> nn.Sequential:
    return nn.Sequential(
        linear(inputs, hidden, spectral), nn.LayerNorm(hidden), nn.ReLU(), linear(hidden, outputs, spectral)
    )
