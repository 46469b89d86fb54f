"""What MoDEX is measured against, on the same perceptron and the same training loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence
from torch.nn import functional as F

from .classifier import MoDEXClassifier, NetworkClassifier
from .head import Evidence, linear
from .loss import modex_loss, one_hot

ANNEALED_EPOCHS = 10


class SoftmaxClassifier(NetworkClassifier):
    """Cross entropy; its uncertainty is the entropy of the softmax."""

    def uncertainty(self, X: Any) -> NDArray[Any]:
        """Entropy of the class probabilities, in nats."""
        return _entropy(self.predict_proba(X))

    def _build(self, inputs: int, classes: int) -> nn.Module:
        return nn.Sequential(self._backbone(inputs), linear(self._width(inputs), classes, self.spectral))

    def _loss(self, output: Tensor, labels: Tensor, epoch: int) -> Tensor:
        return F.cross_entropy(output, labels)

    def _probabilities(self, output: Tensor) -> Tensor:
        return output.double().softmax(-1)


class EDLClassifier(SoftmaxClassifier):
    """Evidential deep learning (Sensoy et al. 2018): one Dirichlet, squared error, annealed KL to the uniform one.

    Its uncertainty is ``K / alpha_0``.
    """

    def uncertainty(self, X: Any) -> NDArray[Any]:
        """The share of mass that no evidence claims."""
        alpha = self._output(X).relu() + 1
        result: NDArray[Any] = (alpha.shape[-1] / alpha.sum(-1)).double().numpy()
        return result

    def _loss(self, output: Tensor, labels: Tensor, epoch: int) -> Tensor:
        alpha = output.relu() + 1
        truth = one_hot(labels, alpha.shape[-1]).to(alpha.dtype)
        law = Dirichlet(alpha, validate_args=False)
        wrong = Dirichlet(truth + (1 - truth) * alpha, validate_args=False)
        even = Dirichlet(torch.ones_like(alpha), validate_args=False)
        squared = ((truth - law.mean).square() + law.variance).sum(-1)
        return (squared + min(1.0, epoch / ANNEALED_EPOCHS) * kl_divergence(wrong, even)).mean()

    def _probabilities(self, output: Tensor) -> Tensor:
        alpha = output.double().relu() + 1
        return alpha / alpha.sum(-1, keepdim=True)


class FEDLClassifier(MoDEXClassifier):
    """F-EDL (Yoon and Kim 2025): the flexible Dirichlet, one advocacy for all classes and no term for it."""

    _tied = True

    def _loss(self, output: Evidence, labels: Tensor, epoch: int) -> Tensor:
        return modex_loss(output.law, labels, advocacy_weight=0)


class DeepEnsemble(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Softmax classifiers from several seeds (Lakshminarayanan et al. 2017).

    Its uncertainty is the members' mutual information; they took the entropy of the mean, which is ``entropy``.

    Args:
        member: What each member is a copy of.
        size: Members.
        random_state: Seed of the first; each has its own.
    """

    def __init__(self, member: NetworkClassifier, size: int = 5, random_state: int = 0) -> None:
        self.member = member
        self.size = size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DeepEnsemble:
        """Train all members on the same rows."""
        seeds = [1000 * self.random_state + number for number in range(self.size)]
        self.members_ = [clone(self.member).set_params(random_state=seed).fit(X, y) for seed in seeds]
        self.classes_ = self.members_[0].classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The members' mean, ``(N, K)``."""
        mean: NDArray[Any] = np.mean([member.predict_proba(X) for member in self.members_], axis=0)
        return mean

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        chosen: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return chosen

    def uncertainty(self, X: Any) -> NDArray[Any]:
        """Entropy of the mean less the mean entropy, in nats."""
        each = np.stack([member.predict_proba(X) for member in self.members_])
        result: NDArray[Any] = _entropy(each.mean(0)) - _entropy(each).mean(0)
        return result

    def entropy(self, X: Any) -> NDArray[Any]:
        """Entropy of the mean, in nats."""
        return _entropy(self.predict_proba(X))


def _entropy(probabilities: NDArray[Any]) -> NDArray[Any]:
    result: NDArray[Any] = torch.special.entr(torch.from_numpy(probabilities)).sum(-1).numpy()
    return result
