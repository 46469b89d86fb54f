"""Which score each router of transformers ranks experts by, and how to register another one.

A router takes hidden states and returns (logits, weights, indices). Its scoring gives back, from the logits, the
scores that its top-k is taken of and those that its weights are made of, for every expert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from .errors import InvalidSetting, NoRouter


class Scores(NamedTuple):
    """What a router thinks of every expert.

    Args:
        selection: A ``tokens x experts`` tensor that its top-k is taken of; ``-inf`` where an expert is out of the
            question, such as one outside of a token's groups.
        mixing: A ``tokens x experts`` nonnegative tensor that its weights are proportional to.
    """

    selection: Tensor
    mixing: Tensor


Scoring: TypeAlias = Callable[..., Scores]
"""Called as ``scoring(router, logits, *arguments)`` with what the router got behind its hidden states."""


def softmax(_: Any, logits: Tensor) -> Scores:
    """Softmax over all experts, in float32; a softmax over the chosen ones ranks and mixes alike."""
    scores = torch.softmax(logits, -1, dtype=torch.float32)
    return Scores(scores, scores)


def sigmoid(router: Any, logits: Tensor, *arguments: Tensor) -> Scores:
    """Sigmoid; a bias, the router's own or handed to it, enters the ranking only."""
    scores = logits.float().sigmoid()
    bias = arguments[0] if arguments else getattr(router, "e_score_correction_bias", None)
    return Scores(scores if bias is None else scores + bias, scores)


def sigmoid_as_is(_: Any, logits: Tensor, *arguments: Tensor) -> Scores:
    """Sigmoid in the logits' own precision; a bias that is handed over enters the ranking only (LFM2)."""
    scores = logits.sigmoid()
    biased = scores + arguments[0] if arguments and arguments[0] is not None else scores
    return Scores(biased, scores)


def corrected_softmax(router: Any, logits: Tensor) -> Scores:
    """Softmax; the router's own correction enters the ranking only (ERNIE 4.5)."""
    scores = torch.softmax(logits, -1, dtype=torch.float32)
    return Scores(router.moe_statics(scores), scores)


def own_score(router: Any, logits: Tensor) -> Scores:
    """The router's own function of its logits; a bias enters the ranking only (DeepSeek-V4)."""
    scores = router.score_fn(logits).float()
    return Scores(scores + router.e_score_correction_bias, scores)


def grouped_sigmoid(router: Any, logits: Tensor) -> Scores:
    """Sigmoid and bias, within the groups whose two best experts have most together (DeepSeek-V3)."""
    selection, mixing = sigmoid(router, logits)
    if router.num_group is None:
        return Scores(selection, mixing)
    return Scores(_within_groups(router, selection, best=2), mixing)


def grouped_softmax(router: Any, logits: Tensor) -> Scores:
    """Softmax, within the groups with the best experts if the router limits groups (DeepSeek-V2)."""
    selection, mixing = softmax(router, logits)
    if router.topk_method == "greedy":
        return Scores(selection, mixing)
    return Scores(_within_groups(router, selection, best=1), mixing)


def paired_softmax(router: Any, logits: Tensor) -> Scores:
    """Softmax, within the groups whose two best experts have most together (Mistral 4)."""
    selection, mixing = softmax(router, logits)
    return Scores(_within_groups(router, selection, best=2), mixing)


def _within_groups(router: Any, scores: Tensor, best: int) -> Tensor:
    grouped = scores.view(scores.shape[0], router.num_group, -1)
    groups = grouped.topk(best, dim=-1).values.sum(-1).topk(router.topk_group, dim=-1).indices
    kept = torch.zeros(grouped.shape[:2], dtype=torch.bool, device=scores.device).scatter(1, groups, True)
    return grouped.masked_fill(~kept[:, :, None], -torch.inf).flatten(1)


# Class names, so that no model is imported before it is used. Each was held against its router's own top-k.
SCORINGS: dict[Scoring, str] = {
    softmax: """AriaTextTopKRouter FlexOlmoTopKRouter GptOssTopKRouter GraniteMoeTopKRouter GraniteMoeSWATopKRouter
        GraniteMoeHybridTopKRouter GraniteMoeSharedTopKRouter JambaTopKRouter LaraMiniTopKRouter MellumTopKRouter
        MiniMaxTopKRouter MixtralTopKRouter OlmoeTopKRouter OpenAIPrivacyFilterTopKRouter Qwen2MoeTopKRouter
        Qwen3MoeTopKRouter Qwen3NextTopKRouter Qwen3OmniMoeTextTopKRouter Qwen3OmniMoeThinkerTextTopKRouter
        Qwen3OmniMoeTalkerTextTopKRouter Qwen3VLMoeTextTopKRouter Qwen3_5MoeTopKRouter Qwen4ExpTextTopKRouter""",
    sigmoid: """FlintTopKRouter HYV3TopKRouter Inkling2TopKRouter Inkling2LoopTopKRouter MiniMaxM2TopKRouter
        MiniMaxM3VLTopKRouter Step3p7TopKRouter""",
    sigmoid_as_is: "Lfm2MoeTopKRouter",
    corrected_softmax: "Ernie4_5_MoeTopKRouter Ernie4_5_VLMoeMoeTopKRouter",
    own_score: "DeepseekV4TopKRouter",
    grouped_sigmoid: """AXK1TopkRouter AXK2TopkRouter BailingHybridTopkRouter BeamTopKRouter DeepseekV3TopkRouter
        DeepseekV32TopkRouter Dots1TopkRouter Dots3NoteTextTopkRouter ExaoneMoeTopkRouter Glm4MoeTopkRouter
        Glm4MoeLiteTopkRouter Glm4vMoeTextTopkRouter Glm5NextTextTopkRouter GlmMoeDsaTopkRouter HYV4TopkRouter
        HYV4VLTopkRouter KimiLinearTopkRouter MiMoV2FlashTopkRouter NemotronHTopkRouter SolarOpenTopkRouter""",
    grouped_softmax: "DeepseekOcr2TextTopkRouter DeepseekV2TopkRouter UnlimitedOcrTextTopkRouter",
    paired_softmax: "Mistral4TopkRouter MistralLarge4TextTopkRouter",
}
_BY_NAME = {name: scoring for scoring, names in SCORINGS.items() for name in names.split()}
_REGISTERED: dict[type[nn.Module], Scoring] = {}


def register_router(cls: type[nn.Module], scoring: Scoring) -> None:
    """Make a router class known, for as long as the process runs; subclasses go with it.

    Its ``forward`` takes hidden states and returns at least (logits, weights, indices), ``tokens x experts`` and
    twice ``tokens x k``. At its first decode step its own choice is held against the scoring's.

    Args:
        cls: The router's class.
        scoring: ``scoring(router, logits, *arguments) -> Scores``.

    Raises:
        InvalidSetting: If the class is no module, or the scoring can't be called.

    >>> register_router(MyRouter, lambda router, logits: Scores(logits, logits.softmax(-1)))  # doctest: +SKIP
    """
    if not (isinstance(cls, type) and issubclass(cls, nn.Module) and callable(scoring)):
        raise InvalidSetting(
            f"register_router got {cls!r} and {scoring!r}", "give a class of modules and a function"
        )
    _REGISTERED[cls] = scoring


def scoring_of(router: nn.Module) -> Scoring | None:
    """The scoring of a router; None if its class is not known."""
    for cls in type(router).__mro__:
        if cls in _REGISTERED:
            return _REGISTERED[cls]
        if cls.__module__.startswith("transformers.models.") and cls.__name__ in _BY_NAME:
            return _BY_NAME[cls.__name__]
    return None


def routers_of(model: nn.Module) -> Iterator[tuple[str, nn.Module, Scoring]]:
    """Name, module and scoring of each router of a model.

    Raises:
        NoRouter: If there is none that is known; the text names what looks like one.
    """
    found = [(name, module, scoring_of(module)) for name, module in model.named_modules()]
    known = [(name, module, scoring) for name, module, scoring in found if scoring is not None]
    if not known:
        suspects = {type(m).__name__ for n, m, _ in found if _suspect(n, m)}
        seen = suspects or {type(module).__name__ for _, module, _ in found}
        raise NoRouter(
            f"{type(model).__name__} has no known router; "
            f"{'these look like one' if suspects else 'its modules are'}: {', '.join(sorted(seen))}",
            "give a mixture of experts of transformers, or make its class known with "
            "separata_oea.register_router(cls, scoring)",
        )
    yield from known


def _suspect(name: str, module: nn.Module) -> bool:
    return "router" in type(module).__name__.lower() or name.rpartition(".")[2] in ("gate", "router")
