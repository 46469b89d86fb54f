"""The law over class probabilities that the heads describe, as a torch distribution."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Size, Tensor
from torch.distributions import Categorical, Dirichlet, Distribution, constraints

from .moments import Moments, efd_covariance, efd_moments


class ExtendedFlexibleDirichlet(Distribution):
    """A mixture of K Dirichlets, each with the shared evidence and one advocate's own.

    Draw an advocate ``L ~ Cat(plausibility)``, then ``p ~ Dir(concentration + advocacy_L e_L)``.

    Args:
        concentration: Shared evidence, ``(..., K)``, positive.
        advocacy: Evidence each advocate adds for its class, ``(..., K)``, not negative.
        plausibility: Weight of each advocate, ``(..., K)``, rows sum to 1.
        validate_args: Whether torch checks the arguments.
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1),  # type: ignore[no-untyped-call]
        "advocacy": constraints.independent(constraints.nonnegative, 1),  # type: ignore[no-untyped-call]
        "plausibility": constraints.simplex,
    }
    support = constraints.simplex

    def __init__(
        self,
        concentration: Tensor,
        advocacy: Tensor,
        plausibility: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.advocacy, self.plausibility = torch.broadcast_tensors(  # type: ignore[no-untyped-call]
            concentration, advocacy, plausibility
        )
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @cached_property
    def moments(self) -> Moments:
        """Mean, and variance between and within advocates."""
        return efd_moments(self.concentration, self.advocacy, self.plausibility)

    @property
    def mean(self) -> Tensor:
        """Expected class probabilities, ``(..., K)``."""
        return self.moments.mean

    @property
    def variance(self) -> Tensor:
        """Variance of each class probability, ``(..., K)``."""
        moments = self.moments
        return moments.between + moments.within

    @property
    def covariance_matrix(self) -> Tensor:
        """Covariance of the class probabilities, ``(..., K, K)``; each row sums to 0."""
        return efd_covariance(self.concentration, self.advocacy, self.plausibility)

    @property
    def entropy_mean(self) -> Tensor:
        """Expected entropy of the drawn class probabilities in nats, ``(...)``."""
        alpha, tau = self.concentration, self.advocacy
        totals = alpha.sum(-1, keepdim=True) + tau
        plain = alpha * torch.digamma(alpha + 1)
        own = (alpha + tau) * torch.digamma(alpha + tau + 1)
        inner = (plain.sum(-1, keepdim=True) - plain + own) / totals
        result: Tensor = (self.plausibility * (torch.digamma(totals + 1) - inner)).sum(-1)
        return result

    @property
    def mutual_information(self) -> Tensor:
        """Entropy of the mean less the mean entropy, in nats, ``(...)``."""
        result: Tensor = torch.special.entr(self.mean).sum(-1) - self.entropy_mean
        return result

    def expected_nll(self) -> Tensor:
        """Expected negative log probability of each class, ``(..., K)``, in nats."""
        alpha, tau, omega = self.concentration, self.advocacy, self.plausibility
        normaliser = (omega * torch.digamma(alpha.sum(-1, keepdim=True) + tau)).sum(-1, keepdim=True)
        result: Tensor = normaliser - (1 - omega) * torch.digamma(alpha) - omega * torch.digamma(alpha + tau)
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of class probabilities ``(..., K)`` inside the simplex."""
        if self._validate_args:
            self._validate_sample(value)
        alpha, tau = self.concentration, self.advocacy
        logs = value.log()
        shared = ((alpha - 1) * logs - torch.lgamma(alpha)).sum(-1)
        own = (
            torch.lgamma(alpha.sum(-1, keepdim=True) + tau) + torch.lgamma(alpha) - torch.lgamma(alpha + tau)
        )
        result: Tensor = shared + torch.logsumexp(self.plausibility.log() + own + tau * logs, -1)
        return result

    def sample(self, sample_shape: Size | tuple[int, ...] = ()) -> Tensor:  # type: ignore[override]
        """Draws of shape ``sample_shape + (..., K)``; an advocate's choice has no gradient, so there is no rsample."""
        with torch.no_grad():
            chosen = Categorical(self.plausibility).sample(Size(sample_shape))  # type: ignore[no-untyped-call]
            extra = torch.nn.functional.one_hot(chosen, self.event_shape[0]) * self.advocacy
            return Dirichlet(self.concentration + extra).sample()
