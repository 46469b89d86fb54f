"""What routing costs, and what a decode step gains, over growing batches."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from separata.claims import Race, Trial
from separata_kit_llm import tiny

from .evaluation import piggybacked, rows_of
from .example_model import texts
from .reference import route_reference
from .routing import route
from .speed_claims import LARGE
from .timing import decoding, prefilled


def routing(trial: Trial) -> Iterator[Race]:
    """Routing sixteen rows over more and more experts, against the two phases in Python."""
    for experts in (32, 64, 128, 256, 512):
        scores = torch.randn(16, experts, generator=trial.generator()).softmax(-1)
        yield Race(experts, lambda s=scores: route(s, 8, 4), lambda s=scores: route_reference(s, 8, 4))  # type: ignore[misc]


def decode(trial: Trial) -> Iterator[Race]:
    """Decoding two tokens a row with k0 = 2 of 4, against the plain model; 64 experts of 25 MB, one layer."""
    model = tiny.qwen3_moe(seed=trial.seed, active=4, **LARGE)
    for batch in (1, 4, 16, 64):
        ids = rows_of(texts()[1], batch, 34)
        cache, steps = prefilled(model, ids[:, :32]), ids[:, 32:]
        yield Race(batch, decoding(model, cache, steps, piggybacked(2)), decoding(model, cache, steps, None))
