from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache

from separata_kit_llm import tiny
from separata_oea import OEAConfig, patch_moe, route
from separata_oea.errors import InvalidSetting, NoRouter, PaddingUnmasked
from separata_oea.routers import routers_of, scoring_of

FAMILIES = ["qwen3", "olmoe", "mixtral", "deepseek2", "deepseek3", "granite"]
ModelOf = Callable[[str], Any]


@torch.no_grad()
def decode(model: Any, ids: Tensor, prompt: int = 6, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Logits of a prompt, and of decode steps behind it."""
    cache = DynamicCache(config=model.config)
    first = model(ids[:, :prompt], cache=cache, attention_mask=mask).logits
    later = []
    for place in range(prompt, ids.shape[1]):
        if mask is not None:
            mask = torch.nn.functional.pad(mask, (0, 1), value=1)
        later.append(model(ids[:, place : place + 1], cache=cache, attention_mask=mask).logits)
    return first, torch.cat(later, 1)


@pytest.mark.parametrize("kind", FAMILIES)
def test_prompts_are_untouched_and_steps_are_not(kind: str, model_of: ModelOf, ids: Tensor) -> None:
    model = model_of(kind)
    plain = decode(model, ids)
    with patch_moe(model, OEAConfig(k0=1)) as activation:
        routed = decode(model, ids)
    again = decode(model, ids)
    assert torch.equal(plain[0], routed[0])
    assert not torch.equal(plain[1], routed[1])
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    for row in activation.rows():
        assert row["steps"] == ids.shape[1] - 6
        assert row["experts_hit"] < row["plain_experts_hit"] <= 16


@pytest.mark.parametrize("kind", FAMILIES)
def test_k0_of_k_changes_nothing(kind: str, model_of: ModelOf, ids: Tensor) -> None:
    model = model_of(kind)
    plain = decode(model, ids)
    k = next(router.top_k for _, router, _ in routers_of(model))
    with patch_moe(model, OEAConfig(k0=k)) as activation:
        routed = decode(model, ids)
    assert torch.equal(plain[1], routed[1])
    assert activation.summary()["ratio"] == 1


@pytest.mark.parametrize("kind", FAMILIES)
def test_weights_are_the_models_own_restricted_to_the_chosen(
    kind: str, model_of: ModelOf, generator: torch.Generator
) -> None:
    """Against the rule written out: the model's selection among the union, its weights scaled to its own sum."""
    model = model_of(kind)
    name, router, scoring = next(iter(routers_of(model)))
    states = torch.randn(5, 32, generator=generator)
    with torch.no_grad():
        logits, weights, indices = router(states)
        selection, mixing = scoring(router, logits)
        with patch_moe(model, OEAConfig(k0=2)) as activation, activation.step():
            _, found_weights, found_indices = router(states)
    union = set(selection.topk(2).indices.flatten().tolist())
    for row in range(5):
        ranked = selection[row].sort(descending=True).indices.tolist()
        own = [e for e in ranked if e in union and selection[row, e] > -torch.inf][: indices.shape[1]]
        share = mixing[row, own] / mixing[row, own].sum() * weights[row].sum()
        assert found_indices[row, : len(own)].tolist() == own
        torch.testing.assert_close(found_weights[row, : len(own)], share)
        assert bool((found_weights[row, len(own) :] == 0).all())
        assert set(found_indices[row].tolist()) <= union
    assert activation.schedulers[name].statistics()["experts_hit"] == len(union)


@pytest.mark.parametrize("implementation", ["eager", "grouped_mm", "batched_mm"])
def test_one_row_works_with_every_implementation_of_experts(
    implementation: str, model_of: ModelOf, ids: Tensor
) -> None:
    """Alone a row has k0 experts only; the places left over must neither fail nor count."""
    model = model_of("qwen3")
    with patch_moe(model, OEAConfig(k0=2)):
        expected = decode(model, ids[:1])[1]
    before = model.config._experts_implementation
    model.set_experts_implementation(implementation)
    try:
        with patch_moe(model, OEAConfig(k0=2)):
            found = decode(model, ids[:1])[1]
    finally:
        model.set_experts_implementation(before)
    # Two implementations add in another order.
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_state_dict_stays_and_everything_is_put_back(qwen3: Any, ids: Tensor) -> None:
    before = {name: value.clone() for name, value in qwen3.state_dict().items()}
    router = qwen3.model.layers[0].mlp.gate

    def fail() -> None:
        with patch_moe(qwen3, OEAConfig(k0=2)):
            assert list(qwen3.state_dict()) == list(before)
            decode(qwen3, ids)
            raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        fail()
    assert "forward" not in router.__dict__
    assert not qwen3._forward_hooks
    assert not qwen3._forward_pre_hooks
    assert all(torch.equal(value, qwen3.state_dict()[name]) for name, value in before.items())


def test_alone_each_row_is_the_same_in_every_batch(qwen3: Any, ids: Tensor) -> None:
    with patch_moe(qwen3, OEAConfig(k0=2, deterministic=True)) as activation:
        together = decode(qwen3, ids)[1]
        alone = torch.cat([decode(qwen3, row[None])[1] for row in ids])
    # Products of other batch sizes add in another order.
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    assert activation.summary()["k0"] == 2
    with patch_moe(qwen3, OEAConfig(k0=2)):
        assert (decode(qwen3, ids)[1] - alone).abs().max() > 1e-2


def test_a_model_patched_to_top_k0_is_a_model_with_fewer_experts_a_token(qwen3: Any, ids: Tensor) -> None:
    with patch_moe(qwen3, OEAConfig(k0=2, deterministic=True)):
        found = decode(qwen3, ids, prompt=6)[1]
    routers = [router for _, router, _ in routers_of(qwen3)]
    cache = DynamicCache(config=qwen3.config)
    with torch.no_grad():
        qwen3(ids[:, :6], cache=cache)
        for router in routers:
            router.top_k = 2
        try:
            expected = [qwen3(ids[:, i : i + 1], cache=cache).logits for i in range(6, ids.shape[1])]
        finally:
            for router in routers:
                router.top_k = 4
    torch.testing.assert_close(found, torch.cat(expected, 1), rtol=1e-4, atol=1e-4)


def test_finished_rows_load_nothing(ids: Tensor) -> None:
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=2, experts=16, expert_hidden=16)
    model.generation_config.pad_token_id = 0
    ended = ids.clone()
    ended[2:, 6:] = 0
    with patch_moe(model, OEAConfig(k0=2)) as some:
        decode(model, ended)
    with patch_moe(model, OEAConfig(k0=2)) as few:
        decode(model, ids[:2])
    assert some.summary()["tokens"] == 2
    assert some.summary()["experts_hit"] == few.summary()["experts_hit"]


def test_masked_rows_load_nothing(qwen3: Any, ids: Tensor) -> None:
    cache = DynamicCache(config=qwen3.config)
    mask = torch.ones(6, 7, dtype=torch.int64)
    mask[3:, -1] = 0
    with torch.no_grad(), patch_moe(qwen3, OEAConfig(k0=2)) as activation:
        qwen3(ids[:, :6], cache=cache)
        qwen3(ids[:, 6:7], cache=cache, attention_mask=mask)
    assert activation.summary()["tokens"] == 3


def test_generate_goes_through_sampling_and_beams(qwen3: Any, ids: Tensor) -> None:
    with patch_moe(qwen3, OEAConfig(k0=2)) as activation:
        qwen3.generate(ids[:, :4], max_new_tokens=5, do_sample=False)
        qwen3.generate(ids[:2, :4], max_new_tokens=5, num_beams=3, do_sample=False)
    # The first of the new tokens comes from the prompt's forward.
    assert activation.summary()["steps"] == 8
    assert activation.summary()["tokens"] == 6


def test_several_positions_of_a_row_join_one_union(qwen3: Any, ids: Tensor) -> None:
    def verified(positions: int) -> dict[str, float]:
        cache = DynamicCache(config=qwen3.config)
        with torch.no_grad(), patch_moe(qwen3, OEAConfig(k0=2, positions=positions)) as activation:
            qwen3(ids[:, :6], cache=cache)
            qwen3(ids[:, 6:9], cache=cache)
        return activation.summary()

    assert verified(2)["steps"] == 0
    assert verified(3)["tokens"] == 18


def test_rows_of_a_prompt_in_the_batch_stay_plain_and_are_joined(
    qwen3: Any, generator: torch.Generator
) -> None:
    router = qwen3.model.layers[0].mlp.gate
    states = torch.randn(6, 32, generator=generator)
    decoding = torch.tensor([True, True, True, False, False, False])
    with torch.no_grad():
        _, weights, indices = router(states)
        with patch_moe(qwen3, OEAConfig(k0=1)) as activation, activation.step(decoding=decoding):
            logits, found_weights, found_indices = router(states)
    assert torch.equal(found_indices[3:], indices[3:])
    assert torch.equal(found_weights[3:], weights[3:])
    scoring = scoring_of(router)
    assert scoring is not None
    scores = scoring(router, logits).selection
    loaded = torch.zeros(16, dtype=torch.bool)
    loaded[indices[3:].flatten()] = True
    expected = route(scores[:3], 4, 1, loaded=loaded)
    assert int(expected.experts_hit) > int(route(scores[:3], 4, 1).experts_hit)
    assert torch.equal(found_indices[:3], expected.indices)


def test_padding_without_a_mask_is_warned_of_once(ids: Tensor, recwarn: pytest.WarningsRecorder) -> None:
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=2, experts=16, expert_hidden=16)
    model.config.pad_token_id = 0
    padded = ids.clone()
    padded[1, :3] = 0
    with patch_moe(model):
        with pytest.warns(PaddingUnmasked, match="attention_mask"):
            decode(model, padded)
        decode(model, padded)
    assert not [one for one in recwarn if one.category is PaddingUnmasked]


def test_masked_padding_is_not_warned_of(ids: Tensor, recwarn: pytest.WarningsRecorder) -> None:
    model = tiny.qwen3_moe(seed=0, hidden=32, layers=2, experts=16, expert_hidden=16)
    model.config.pad_token_id = 0
    padded = ids.clone()
    padded[1, :3] = 0
    with patch_moe(model):
        decode(model, padded, mask=(padded[:, :6] != 0).long())
    assert not [one for one in recwarn if one.category is PaddingUnmasked]


def test_a_target_in_seconds_is_learned_from_the_steps(qwen3: Any, ids: Tensor, monkeypatch: Any) -> None:
    """On a clock by which each expert takes a second, a target of seconds is one of experts."""
    with patch_moe(qwen3, OEAConfig(k0=4, target_seconds=16.0)) as activation:
        now = {"time": 0.0, "began": False}

        def clock(_: Any) -> float:
            now["began"] = not now["began"]
            if not now["began"]:
                now["time"] += float(activation.last_hit().sum())
            return now["time"]

        monkeypatch.setattr("separata_oea.patching.clock", clock)
        hits = []
        for _ in range(8):
            cache = DynamicCache(config=qwen3.config)
            with torch.no_grad():
                qwen3(ids[:, :6], cache=cache)
                for place in range(6, 10):
                    qwen3(ids[:, place : place + 1], cache=cache)
                    hits.append(activation.last_hit())
    early, late = torch.stack(hits[:8]).double(), torch.stack(hits[10:]).double()
    assert early.mean() > 8
    # Two layers in sixteen seconds: eight experts each.
    assert late.max() <= 8


def test_settings_that_contradict_the_model_are_refused(qwen3: Any) -> None:
    with pytest.raises(InvalidSetting, match="k0 is 1 to 4"), patch_moe(qwen3, OEAConfig(k0=5)):
        pass


def test_a_dense_model_is_refused() -> None:
    with pytest.raises(NoRouter), patch_moe(tiny.llama(seed=0, hidden=32, layers=1)):
        pass
