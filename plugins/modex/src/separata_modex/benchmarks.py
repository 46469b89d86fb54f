"""Speed of the closed forms, and of a whole forward pass, over the number of classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from separata.claims import Race, Trial

from .head import modexify
from .moments import efd_moments
from .references import efd_moments_reference

ROWS = 16
WIDTH = 2048


def moments(trial: Trial) -> Iterator[Race]:
    """Sixteen rows of float64, 10 to 1000 classes, against the tensor of every advocate's parameters."""
    for classes in (10, 100, 1000):
        drawn = torch.rand(3, ROWS, classes, generator=trial.generator(), dtype=torch.float64) + 0.1
        arguments = drawn[0], drawn[1], drawn[2] / drawn[2].sum(-1, keepdim=True)
        yield Race(classes, partial(efd_moments, *arguments), partial(efd_moments_reference, *arguments))


def forwards(trial: Trial) -> Iterator[Race]:
    """Forward passes over 10 to 10,000 classes."""
    for classes in (10, 100, 1000, 10_000):
        yield forward(classes, trial)


def forward(classes: int, trial: Trial) -> Race:
    """64 rows through a perceptron of three times 2048: mean and variance of the law against a softmax.

    Args:
        classes: How many.
        trial: The run it belongs to.
    """
    rows = torch.randn(64, WIDTH, generator=trial.generator())

    def classifier() -> nn.Sequential:
        layers = [part for _ in range(3) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(WIDTH, classes)).eval()

    softmax, network = classifier(), modexify(classifier()).eval()

    @torch.no_grad()
    def ours() -> object:
        law = network(rows).law
        return law.mean, law.variance

    @torch.no_grad()
    def peer() -> object:
        return softmax(rows).softmax(-1)

    return Race(classes, ours, peer)
