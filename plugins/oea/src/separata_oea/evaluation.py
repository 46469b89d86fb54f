"""What routing costs in quality: teacher-forced decoding, a batch of rows a step, against the plain model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from separata_kit_llm import continuation_logits, kl_divergence

from .config import OEAConfig
from .errors import InvalidSetting, TooFewSamples
from .patching import MakeScheduler, patch_moe
from .routers import routers_of
from .scheduler import BatchScheduler


@attrs.frozen
class Score:
    """How one routing did.

    Args:
        cross_entropy: Mean negative log-likelihood a token, in nats.
        kl: Mean divergence of the plain model's next-token distribution from this one, in nats.
        layers: Statistics of each layer's scheduler, by name, averaged over batches.
    """

    cross_entropy: float
    kl: float
    layers: Mapping[str, Mapping[str, float]]

    def mean(self, statistic: str) -> float:
        """The mean over layers of one of ``BatchScheduler.statistics``."""
        return sum(layer[statistic] for layer in self.layers.values()) / len(self.layers)


def rows_of(tokens: Tensor, rows: int, length: int) -> Tensor:
    """Windows of a text, spread evenly over it: a ``rows x length`` tensor.

    Raises:
        TooFewSamples: If the text is shorter than the windows together.
    """
    if len(tokens) < rows * length:
        raise TooFewSamples(
            f"the text has {len(tokens)} tokens", f"{rows} rows of {length} need {rows * length}"
        )
    starts = torch.linspace(0, len(tokens) - length, rows).long()
    return tokens[starts[:, None] + torch.arange(length)]


def plain() -> MakeScheduler:
    """Schedulers that route as the model does and count the experts it loads."""
    return lambda k: BatchScheduler(k, OEAConfig(k0=k))


def pruned(k0: int) -> MakeScheduler:
    """Schedulers of plain top-k0: lowering ``num_experts_per_tok`` for the decode steps."""
    return lambda k: BatchScheduler(k, OEAConfig(k0=k0, deterministic=True))


def piggybacked(k0: int, config: OEAConfig | None = None) -> MakeScheduler:
    """Schedulers of opportunistic expert activation with this k0."""
    return lambda k: BatchScheduler(k, attrs.evolve(config or OEAConfig(), k0=k0))


def compare(
    model: Any, ids: Tensor, routings: Mapping[str, MakeScheduler], *, batch: int, prompt: int = 1
) -> dict[str, Score]:
    """Decode the same rows by the plain model and by other routings.

    Each batch is read up to the prompt's last token in one forward and then fed the true text, a token of every
    row a step. The prompt is not scored.

    Args:
        model: A causal mixture of experts.
        ids: A ``rows x length`` tensor.
        routings: Name to what makes its schedulers; ``plain`` is added.
        batch: Rows of a step; divides the rows.
        prompt: Tokens of each row that are its prompt.

    Returns:
        Name to score, ``plain`` first.
    """
    rows, length = ids.shape
    if rows % batch or not 1 <= prompt < length - 1:
        raise InvalidSetting(
            f"{rows} rows of {length} tokens in batches of {batch} behind prompts of {prompt}",
            "rows are a multiple of the batch, and at least two tokens follow the prompt",
        )
    makers = {"plain": plain(), **routings}
    found: dict[str, list[Score]] = {name: [] for name in makers}
    for part in torch.split(ids, batch):
        exact: Tensor | None = None
        for name, make in makers.items():
            with patch_moe(model, scheduler=make) as activation:
                logits = _decoded(model, part.to(model.device), prompt)
            exact = logits if exact is None else exact
            layers = {row.pop("layer"): row for row in activation.rows()}
            found[name].append(Score(*_scored(logits, exact, part[:, prompt:].to(model.device)), layers))
    return {name: _mean(scores) for name, scores in found.items()}


@torch.no_grad()
def _decoded(model: Any, ids: Tensor, prompt: int) -> Tensor:
    """Logits that predict each token behind the prompt."""
    first = model(input_ids=ids[:, :prompt], use_cache=True)
    rest = continuation_logits(model, ids[:, prompt:-1], first.cache, step=1)
    return torch.cat([first.logits[:, -1:], rest], dim=1)


def _scored(logits: Tensor, exact: Tensor, targets: Tensor) -> tuple[float, float]:
    flat = logits.flatten(0, 1).double()
    nll = torch.nn.functional.cross_entropy(flat, targets.flatten())
    return float(nll), float(kl_divergence(exact, logits).mean())


def _mean(scores: Sequence[Score]) -> Score:
    def over(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    layers = {
        name: {key: over([score.layers[name][key] for score in scores]) for key in scores[0].layers[name]}
        for name in scores[0].layers
    }
    return Score(
        over([score.cross_entropy for score in scores]), over([score.kl for score in scores]), layers
    )


def profile(
    model: Any,
    ids: Tensor,
    *,
    batch: int,
    k0s: Sequence[int] = (),
    prompt: int = 1,
    config: OEAConfig | None = None,
) -> list[dict[str, Any]]:
    """What each k0 loads and costs, with plain top-k0 beside it.

    Args:
        model: A causal mixture of experts.
        ids: A ``rows x length`` tensor of real text.
        batch: Rows of a step.
        k0s: Which k0; all from 1 to the model's k if not given.
        prompt: Tokens of each row that are its prompt.
        config: Further settings of the routing.

    Returns:
        For each routing and k0 a row for all layers together, with cross-entropy and divergence, and one a layer.
    """
    k = experts_per_token(model)
    if any(not 1 <= k0 <= k for k0 in k0s):
        raise InvalidSetting(
            f"k0 is {', '.join(map(str, k0s))}", f"this model has {k} experts a token: 1 to {k}"
        )
    chosen = list(k0s) or list(range(1, k + 1))
    routings = {f"oea {k0}": piggybacked(k0, config) for k0 in chosen if k0 < k}
    routings |= {f"pruned {k0}": pruned(k0) for k0 in chosen if k0 < k}
    scores = compare(model, ids, routings, batch=batch, prompt=prompt)
    base = scores["plain"].cross_entropy
    rows: list[dict[str, Any]] = []
    for name, score in scores.items():
        routing, _, k0 = name.partition(" ")
        own = {"routing": routing, "k0": int(k0 or k)}
        quality = {
            "cross_entropy": score.cross_entropy,
            "rise": score.cross_entropy - base,
            "kl": score.kl,
        }
        everything = {name: score.mean(name) for name in ("experts_hit", "experts_hit_sd", "ratio")}
        rows.append({"layer": "all", **own, **everything, **quality})
        for layer, found in score.layers.items():
            each = {name: found[name] for name in everything}
            rows.append({"layer": layer, **own, **each, **dict.fromkeys(quality)})
    return rows


def experts_per_token(model: nn.Module) -> int:
    """The largest k of a model's routers."""
    return max(int(getattr(router, "top_k", 0)) for _, router, _ in routers_of(model)) or 1
