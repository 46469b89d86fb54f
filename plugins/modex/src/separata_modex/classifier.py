"""MoDEX on arrays, in scikit-learn's habits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from separata import artifacts

from .errors import InvalidSetting
from .head import Evidence, MoDEXHead, MoDEXNetwork, linear
from .loss import modex_loss
from .training import train
from .verdicts import Courtroom, Labelled


class NetworkClassifier(Labelled, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the method and its peers share: a perceptron on standardised columns.

    Args:
        hidden: Widths of the perceptron's layers.
        epochs: The most passes over the data.
        learning_rate: Of Adam.
        batch_size: Rows a step.
        spectral: Whether linear layers are spectrally normalised.
        validation_fraction: Share of rows held out to choose the best epoch.
        patience: Epochs without a better loss before training stops.
        classes: All classes, also those no row has; by default those of the rows.
        random_state: Seed, or numpy's RandomState.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        *,
        epochs: int = 60,
        learning_rate: float = 5e-4,
        batch_size: int = 64,
        spectral: bool = True,
        validation_fraction: float = 0.05,
        patience: int = 30,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.spectral = spectral
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows ``X`` ``(N, D)`` and one class a row.

        Raises:
            InvalidLabels: If there is one class only, several labels a row, or a label outside ``classes``.
            InvalidSetting: If a setting is out of range.

        Warns:
            AbsentClass: If a class of ``classes`` has no row; its advocate then learns only to stay silent.
        """
        if self.epochs < 1 or self.batch_size < 1 or not 0 <= self.validation_fraction < 1:
            raise InvalidSetting(
                f"epochs {self.epochs}, batch_size {self.batch_size}, "
                f"validation_fraction {self.validation_fraction}",
                "epochs and batch_size are at least 1, the fraction is in [0, 1)",
            )
        X, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        codes = self._learn_classes(y)
        self.mean_ = X.mean(0, dtype=np.float64)
        deviation = X.std(0, dtype=np.float64)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # Layers draw their first weights from the global generator.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = self._build(X.shape[1], len(self.classes_))
            self.n_iter_ = 1 + train(
                self._network,
                self._loss,
                self._standardised(X),
                torch.from_numpy(codes.astype(np.int64)),
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                validation_fraction=self.validation_fraction,
                patience=self.patience,
                generator=torch.Generator().manual_seed(seed),
            )
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Spectrally normalised layers can't be pickled; their tensors can.
        state: dict[str, Any] = dict(super().__getstate__())
        if "_network" in state:
            state["_network"] = self._network.state_dict()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        tensors = state.get("_network")
        super().__setstate__(state)
        if tensors is not None:
            self._restore(tensors)

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        # Building draws first weights, which the tensors replace, from the global generator.
        with torch.random.fork_rng(devices=[]):
            self._network = self._build(self.n_features_in_, len(self.classes_))
        self._network.load_state_dict(tensors)
        self._network.eval()

    def _standardised(self, X: NDArray[Any]) -> Tensor:
        return torch.from_numpy(((X - self.mean_) / self.scale_).astype(np.float32))

    def _output(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        with torch.no_grad():
            return self._network(self._standardised(X))

    def _backbone(self, inputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for before, after in zip((inputs, *self.hidden), self.hidden, strict=False):
            layers += [linear(before, after, self.spectral), nn.ReLU()]
        return nn.Sequential(*layers)

    def _width(self, inputs: int) -> int:
        return self.hidden[-1] if self.hidden else inputs

    def _build(self, inputs: int, classes: int) -> nn.Module:
        raise NotImplementedError

    def _loss(self, output: Any, labels: Tensor, epoch: int) -> Tensor:
        raise NotImplementedError


class MoDEXClassifier(Courtroom, NetworkClassifier):
    """A classifier that says how sure it is, and why: too little evidence, or advocates who disagree.

    Parameters are those of ``NetworkClassifier``; widths of the perceptron first.
    """

    _tied = False

    def save(self, folder: Path | str) -> None:
        """Write the trained classifier into a folder, as safetensors and JSON."""
        check_is_fitted(self)
        settings = self.get_params() | {"random_state": None, "classes": None}
        names = getattr(self, "feature_names_in_", None)
        config = {
            "settings": settings,
            "classes": self.classes_.tolist(),
            "columns": None if names is None else names.tolist(),
        }
        tensors = dict(self._network.state_dict())
        tensors |= {"mean_": torch.from_numpy(self.mean_), "scale_": torch.from_numpy(self.scale_)}
        artifacts.save(folder, slug="modex", kind="estimator", tensors=tensors, config=config)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a classifier that ``save`` wrote."""
        found = artifacts.load(folder, slug="modex", kind="estimator")
        settings = dict(found.config["settings"])
        made = cls(tuple(settings.pop("hidden")), **settings)
        tensors = dict(found.tensors)
        made.mean_, made.scale_ = (tensors.pop(name).numpy() for name in ("mean_", "scale_"))
        made.classes_ = np.array(found.config["classes"])
        made.n_features_in_ = len(made.mean_)
        if found.config["columns"] is not None:
            made.feature_names_in_ = np.array(found.config["columns"], dtype=object)
        made._restore(tensors)
        return made

    def _build(self, inputs: int, classes: int) -> nn.Module:
        head = MoDEXHead(self._width(inputs), classes, spectral=self.spectral, tied=self._tied)
        return MoDEXNetwork(self._backbone(inputs), head)

    def _loss(self, output: Evidence, labels: Tensor, epoch: int) -> Tensor:
        return modex_loss(output.law, labels)
