"""Each scoring ranks and mixes as the routers of transformers that it is named for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import nn

from separata_kit_llm import tiny
from separata_oea import Scores, patch_moe, register_router
from separata_oea import routers as module
from separata_oea.errors import InvalidSetting, NoRouter, RouterMismatch
from separata_oea.routers import routers_of, scoring_of, softmax

EXPERTS, K, HIDDEN = 16, 4, 12
SETTINGS = {
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), EXPERTS),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k"), K),
    "hidden_size": HIDDEN,
    "norm_topk_prob": True,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
    "router_scaling_factor": 2.5,
    "topk_method": "group_limited_greedy",
    "scoring_func": "sqrtsoftplus",
    "use_expert_bias": True,
    "moe_norm_min": 1e-12,
}
ROUTERS = [
    "qwen3_moe:Qwen3MoeTopKRouter",
    "olmoe:OlmoeTopKRouter",
    "mixtral:MixtralTopKRouter",
    "gpt_oss:GptOssTopKRouter",
    "granitemoe:GraniteMoeTopKRouter",
    "deepseek_v2:DeepseekV2TopkRouter",
    "deepseek_v3:DeepseekV3TopkRouter",
    "deepseek_v4:DeepseekV4TopKRouter",
    "glm4_moe:Glm4MoeTopkRouter",
    "minimax_m2:MiniMaxM2TopKRouter",
    "mistral4:Mistral4TopkRouter",
    "lfm2_moe:Lfm2MoeTopKRouter",
    "ernie4_5_moe:Ernie4_5_MoeTopKRouter",
]


HANDED = ("minimax_m2", "lfm2_moe")  # their blocks hand them the bias


class Settings:
    """Answers what routers ask of a model's config."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(SETTINGS | settings)


def made(path: str, generator: torch.Generator, **settings: Any) -> nn.Module:
    place, _, name = path.partition(":")
    found = import_module(f"transformers.models.{place}.modeling_{place}")
    router: nn.Module = getattr(found, name)(Settings(**settings))
    with torch.no_grad():
        for parameter in router.parameters():
            parameter.normal_(generator=generator)
        for buffer in router.buffers():
            buffer.normal_(generator=generator).mul_(0.2)
    return router


def agree(router: nn.Module, generator: torch.Generator, *arguments: Any) -> None:
    with torch.no_grad():
        logits, weights, indices = router(torch.randn(50, HIDDEN, generator=generator), *arguments)
        scoring = scoring_of(router)
        assert scoring is not None
        selection, mixing = scoring(router, logits, *arguments)
    best = selection.topk(K)
    assert torch.equal(best.indices.sort().values, indices.sort().values)
    held = mixing.gather(1, indices)
    expected = held / held.sum(1, keepdim=True) * weights.sum(1, keepdim=True)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("path", ROUTERS)
def test_a_scoring_ranks_and_mixes_as_its_router(path: str, generator: torch.Generator) -> None:
    arguments = (torch.rand(EXPERTS, generator=generator),) if path.startswith(HANDED) else ()
    agree(made(path, generator), generator, *arguments)


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("deepseek_v2:DeepseekV2TopkRouter", {"topk_method": "greedy"}),
        ("axk2:AXK2TopkRouter", {"n_group": None}),
        ("olmoe:OlmoeTopKRouter", {"norm_topk_prob": False}),
        ("deepseek_v3:DeepseekV3TopkRouter", {"norm_topk_prob": False}),
    ],
)
def test_so_it_does_in_other_settings(
    path: str, settings: dict[str, Any], generator: torch.Generator
) -> None:
    agree(made(path, generator, **settings), generator)


class OwnRouter(nn.Module):
    """Ranks by the negative logits: by nothing that is known."""

    def __init__(self, gate: Any) -> None:
        super().__init__()
        self.weight, self.top_k = gate.weight, gate.top_k

    def forward(self, hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits = hidden_states.reshape(-1, hidden_states.shape[-1]) @ self.weight.T
        best = torch.softmax(-logits, -1).topk(self.top_k)
        return logits, best.values, best.indices


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model whose routers are of no known class."""
    monkeypatch.setattr(module, "_REGISTERED", {})
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=2, experts=16, expert_hidden=16)
    for layer in model.model.layers:
        layer.mlp.gate = OwnRouter(layer.mlp.gate)
    return model


def decode(model: Any) -> dict[str, float]:
    ids = torch.arange(20).reshape(4, 5)
    with torch.no_grad(), patch_moe(model) as activation:
        cache = model(ids[:, :4], use_cache=True).cache
        model(ids[:, 4:], cache=cache)
    return activation.summary()


def test_an_unknown_router_is_named_with_the_way_to_register_it(strange: Any) -> None:
    with pytest.raises(NoRouter, match=r"OwnRouter(.|\n)*register_router"):
        list(routers_of(strange))


def test_a_registered_router_is_patched(strange: Any) -> None:
    def negative(_: Any, logits: torch.Tensor) -> Scores:
        scores = torch.softmax(-logits, -1)
        return Scores(scores, scores)

    register_router(OwnRouter, negative)
    assert decode(strange)["steps"] == 1


def test_a_wrong_scoring_is_found_out(strange: Any) -> None:
    register_router(OwnRouter, softmax)
    with pytest.raises(RouterMismatch, match="OwnRouter"):
        decode(strange)


def test_a_subclass_goes_with_its_class(generator: torch.Generator) -> None:
    router = made(ROUTERS[0], generator)
    router.__class__ = type("Mine", (type(router),), {})
    assert scoring_of(router) is softmax


def test_a_model_without_experts_is_refused_with_its_modules() -> None:
    with pytest.raises(NoRouter, match=r"Linear(.|\n)*mixture of experts"):
        list(routers_of(nn.Sequential(nn.Linear(2, 2))))


def test_only_classes_of_modules_are_registered() -> None:
    with pytest.raises(InvalidSetting, match="class of modules"):
        register_router(int, softmax)  # type: ignore[arg-type]
