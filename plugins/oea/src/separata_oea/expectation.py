"""How many distinct experts a batch will load, from router scores recorded before anything is deployed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor, nn

from separata.estimates import Estimate
from separata_kit_llm import Wrap, patched

from .errors import InvalidSetting, TooFewSamples
from .routers import Scoring, routers_of
from .routing import route


def expected_experts(experts: int, k: int, batch: int) -> float:
    """Distinct experts of a batch whose tokens draw k of them uniformly and independently.

    ``E[T] = N (1 - (1 - k/N)^B)``, the paper's yardstick; real routers agree more, and load fewer.

    >>> round(expected_experts(128, 8, 16), 1)
    82.4
    """
    if not 1 <= k <= experts or batch < 0:
        raise InvalidSetting(f"k is {k} of {experts} experts, batch {batch}", "k is 1 to the experts")
    return experts * (1 - (1 - k / experts) ** batch)


def estimate_T(scores: Tensor, k0: int, batch: int) -> Estimate:
    """The mean number of experts that a batch loads with ``k0``, from the scores of one router on sample text.

    Averages over all ways to draw the batch's rows from the samples, in closed form: an expert that m of M rows
    have among their k0 best is missed with probability C(M - m, B) / C(M, B). The standard error is the jackknife's
    over rows; rows that follow each other in one text agree, so take samples from many places.

    Args:
        scores: A ``samples x experts`` tensor that the router ranks by; see ``record_scores``.
        k0: Experts that each token may load; the model's k gives plain routing.
        batch: Rows of a decode step.

    Raises:
        TooFewSamples: If there are not more samples than rows.
        InvalidSetting: If k0 or the batch is out of range.

    >>> generator = torch.Generator().manual_seed(0)
    >>> round(estimate_T(torch.rand(4000, 128, generator=generator), 8, 16).value)
    82
    """
    samples, experts = scores.shape
    if batch < 1:
        raise InvalidSetting(f"the batch is {batch}", "it has at least one row")
    if samples <= batch + 1:
        raise TooFewSamples(
            f"{samples} samples for a batch of {batch}", f"record at least {batch + 2} tokens"
        )
    own = route(scores, k0, k0, pooled=False).indices
    member = torch.nn.functional.one_hot(own, experts + 1).sum(1)[:, :experts].double().cpu().numpy()
    having = member.sum(0)
    value = float(_hit(samples, having, batch).sum())
    # Without one row there are M - 1, and each of its own experts is had by one fewer.
    others = _hit(samples - 1, having, batch)
    fewer = _hit(samples - 1, np.maximum(having - 1, 0), batch)
    left_out = others.sum() + member @ (fewer - others)
    spread = float(((left_out - left_out.mean()) ** 2).sum())
    return Estimate(value, math.sqrt((samples - 1) / samples * spread))


@contextmanager
def record_scores(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Keep the scores of every token that goes through each router in the block, in float32 on the CPU.

    One forward over a text gives as many samples as it has tokens: prompts are routed as decode steps are.

    Raises:
        NoRouter: If the model has no known router.
    """
    routers = list(routers_of(model))
    found: dict[str, list[Tensor]] = {name: [] for name, _, _ in routers}

    def recording(
        name: str,
        router: nn.Module,
        scoring: Scoring,
        original: Any,
        hidden_states: Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        output = original(hidden_states, *args, **kwargs)
        scores = scoring(router, output[0], *args, *kwargs.values())
        found[name].append(scores.selection.detach().float().cpu())
        return output

    wraps = [Wrap(name, partial(recording, name, router, scoring)) for name, router, scoring in routers]
    with patched(model, *wraps):
        yield found


def _hit(samples: int, having: Any, batch: int) -> Any:
    """Probability that a batch of distinct samples holds one that has the expert, for each expert."""
    without = samples - having
    possible = without >= batch
    logs = (
        gammaln(np.where(possible, without, batch) + 1)
        - gammaln(np.where(possible, without - batch, 0) + 1)
        - gammaln(samples + 1)
        + gammaln(samples - batch + 1)
    )
    return np.where(possible, 1 - np.exp(logs), 1.0)
