"""Speed of the closed forms over the number of classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from separata.claims import Race, Trial

from .moments import efd_moments
from .references import efd_moments_reference

ROWS = 16


def moments(trial: Trial) -> Iterator[Race]:
    """Sixteen rows of float64, 10 to 1000 classes, against the tensor of every advocate's parameters."""
    for classes in (10, 100, 1000):
        drawn = torch.rand(3, ROWS, classes, generator=trial.generator(), dtype=torch.float64) + 0.1
        arguments = drawn[0], drawn[1], drawn[2] / drawn[2].sum(-1, keepdim=True)
        yield Race(classes, partial(efd_moments, *arguments), partial(efd_moments_reference, *arguments))
