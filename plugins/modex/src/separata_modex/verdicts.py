"""What every classifier here does with its output: name classes, and say how sure each answer is and why."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .errors import AbsentClass, InvalidLabels
from .head import Evidence


class Labelled:
    """Classes of any labels.

    Attributes:
        classes_: The classes, sorted.
    """

    classes: Any
    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Expected class probabilities, ``(N, K)``."""
        return self._probabilities(self._output(X)).double().numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        found = self.predict_proba(X).argmax(1)
        chosen: NDArray[Any] = self.classes_[found]
        return chosen

    def codes(self, y: Any) -> NDArray[Any]:
        """Positions of labels among the classes.

        Raises:
            InvalidLabels: If a label was not in training.
        """
        check_is_fitted(self)
        unseen = np.setdiff1d(np.unique(y), self.classes_)
        if len(unseen):
            raise InvalidLabels(
                f"classes not seen in training: {', '.join(map(str, unseen))}",
                f"known are {', '.join(map(str, self.classes_))}; score others as out of distribution",
            )
        found: NDArray[Any] = np.searchsorted(self.classes_, y)
        return found

    def _learn_classes(self, y: Any) -> NDArray[Any]:
        """Find the classes of labels, and the labels' positions among them."""
        self.classes_ = np.unique(y if self.classes is None else np.asarray(self.classes))
        if len(self.classes_) < 2:
            raise InvalidLabels(
                f"y holds one class, {self.classes_[0]!r}", "give rows of two classes or more"
            )
        codes = self.codes(y)
        absent = np.setdiff1d(self.classes_, y)
        if len(absent):
            names = ", ".join(map(str, absent))
            warnings.warn(f"no training row has class {names}; give rows of it", AbsentClass, stacklevel=3)
        return codes

    def _output(self, X: Any) -> Any:
        raise NotImplementedError

    def _probabilities(self, output: Any) -> Tensor:
        raise NotImplementedError


class Courtroom(Labelled):
    """What the heads of MoDEX say of each row."""

    def predict_uncertainty(self, X: Any) -> pd.DataFrame:
        """How unsure each row's answer is, and who spoke for which class.

        Returns:
            Columns ``aleatoric`` (entropy of the mean, nats), ``epistemic`` (sum of variances) with its parts
            ``inter`` and ``intra``, ``mi`` (nats), ``advocate`` and its ``plausibility``.
        """
        law = self.evidence(X).law
        moments = law.moments
        inter, intra = moments.between.sum(-1), moments.within.sum(-1)
        weight, advocate = law.plausibility.max(-1)
        return pd.DataFrame(
            {
                "aleatoric": torch.special.entr(moments.mean).sum(-1),
                "epistemic": inter + intra,
                "inter": inter,
                "intra": intra,
                "mi": law.mutual_information,
                "advocate": self.classes_[advocate.numpy()],
                "plausibility": weight,
            }
        )

    def uncertainty(self, X: Any) -> NDArray[Any]:
        """Epistemic uncertainty of each row: high where it should not be trusted."""
        result: NDArray[Any] = self.predict_uncertainty(X)["epistemic"].to_numpy()
        return result

    def evidence(self, X: Any) -> Evidence:
        """What the heads say of each row, in float64."""
        found: Evidence = self._output(X)
        weights = found.plausibility.double()
        return Evidence(
            found.concentration.double(), found.advocacy.double(), weights / weights.sum(-1, keepdim=True)
        )

    def _probabilities(self, output: Evidence) -> Tensor:
        mean = output.law.mean.double()
        return mean / mean.sum(-1, keepdim=True)
