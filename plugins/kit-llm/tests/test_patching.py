from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from separata_kit_llm import Hook, Replace, Wrap, patched
from separata_kit_llm.errors import InvalidPatch


class Zero(nn.Module):
    def forward(self, hidden: Tensor) -> Tensor:
        return torch.zeros_like(hidden)


def logits(model: PreTrainedModel, input_ids: Tensor) -> Tensor:
    with torch.no_grad():
        return model(input_ids).logits


def test_replaced_module_runs_inside_the_block_only(llama: PreTrainedModel, input_ids: Tensor) -> None:
    before = logits(llama, input_ids)
    with patched(llama, Replace("model.layers.1.mlp", Zero())) as same:
        assert same is llama
        assert not torch.equal(logits(llama, input_ids), before)
    assert torch.equal(logits(llama, input_ids), before)


def test_replacement_equals_setting_the_module_by_hand(llama: PreTrainedModel, input_ids: Tensor) -> None:
    with patched(llama, Replace("model.layers.*.mlp", Zero())):
        patched_logits = logits(llama, input_ids)
    for layer in llama.model.layers:
        layer.mlp = Zero()
    assert torch.equal(patched_logits, logits(llama, input_ids))


def test_modules_and_their_order_are_the_same_objects_after_an_exception(llama: PreTrainedModel) -> None:
    before = list(llama.named_modules())
    with (
        pytest.raises(ZeroDivisionError),
        patched(
            llama, Replace("model.layers.0.mlp", Zero()), Wrap("model.norm", lambda original, x: original(x))
        ),
    ):
        raise ZeroDivisionError
    after = list(llama.named_modules())
    assert [name for name, _ in after] == [name for name, _ in before]
    assert all(now is then for (_, now), (_, then) in zip(after, before, strict=True))
    assert "forward" not in llama.model.norm.__dict__


def test_nested_blocks_undo_in_turn(llama: PreTrainedModel) -> None:
    original, outer, inner = llama.model.layers[0].mlp, Zero(), Zero()
    with patched(llama, Replace("model.layers.0.mlp", outer)):
        with patched(llama, Replace("model.layers.0.mlp", inner)):
            assert llama.model.layers[0].mlp is inner
        assert llama.model.layers[0].mlp is outer
    assert llama.model.layers[0].mlp is original


def test_maker_gets_the_old_module(llama: PreTrainedModel, input_ids: Tensor) -> None:
    before = logits(llama, input_ids)
    with patched(llama, Replace(lambda name, _: name.endswith("mlp"), lambda old: nn.Sequential(old))):
        assert isinstance(llama.model.layers[2].mlp, nn.Sequential)
        assert torch.equal(logits(llama, input_ids), before)


def test_module_in_two_places_is_made_once_and_stands_in_both() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    with patched(model, Replace(lambda _, module: module is shared, lambda _: nn.Tanh())):
        assert model[0] is model[2]
        assert isinstance(model[0], nn.Tanh)
    assert model[0] is shared
    assert model[2] is shared


def test_wrap_gets_the_bound_original(llama: PreTrainedModel, input_ids: Tensor) -> None:
    seen = []

    def doubled(original, hidden):
        seen.append(original.__self__)
        return 2 * original(hidden)

    before = logits(llama, input_ids)
    with patched(llama, Wrap("lm_head", doubled)):
        torch.testing.assert_close(logits(llama, input_ids), 2 * before)
    assert seen == [llama.lm_head]


def test_wrap_keeps_a_method_that_the_instance_had_of_its_own(llama: PreTrainedModel) -> None:
    own = llama.model.norm.forward
    llama.model.norm.forward = own
    with patched(llama, Wrap("model.norm", lambda original, x: original(x))):
        assert llama.model.norm.forward is not own
    assert llama.model.norm.__dict__["forward"] is own


def test_wrap_of_the_model_itself(llama: PreTrainedModel, input_ids: Tensor) -> None:
    with patched(llama, Wrap("", lambda *_, **__: "caught")):
        assert llama(input_ids) == "caught"
    assert llama(input_ids) != "caught"


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_are_called_and_removed(llama: PreTrainedModel, input_ids: Tensor, when: str) -> None:
    calls = []
    with patched(llama, Hook("model.layers.*.mlp", lambda _, *rest: calls.append(len(rest)), when=when)):
        logits(llama, input_ids)
    logits(llama, input_ids)
    assert calls == [2 if when == "before" else 3] * 3


def test_hook_output_is_used(llama: PreTrainedModel, input_ids: Tensor) -> None:
    with patched(llama, Hook("lm_head", lambda *given: given[-1] + 1)):
        inside = logits(llama, input_ids)
    torch.testing.assert_close(inside, logits(llama, input_ids) + 1)


@pytest.mark.parametrize(
    "bad",
    [
        Replace("model.layers.7.mlp", Zero()),
        Replace("model.layers.0.mpl", Zero()),
        Replace(lambda *_: False, Zero()),
        Replace("model.norm", lambda _: None),
        Replace("", Zero()),
        Replace("model.layers.0", Zero()),
        Wrap("model.norm", print, method="backward_pass"),
    ],
)
def test_a_bad_patch_changes_nothing(llama: PreTrainedModel, bad: Replace | Wrap) -> None:
    original = llama.model.layers[0].mlp
    with (
        pytest.raises(InvalidPatch) as caught,
        patched(llama, Replace("model.layers.0.mlp", Zero()), bad),
    ):
        pytest.fail("the block must not run")
    assert len(str(caught.value).splitlines()) == 2
    assert llama.model.layers[0].mlp is original


def test_unknown_name_suggests_the_nearest(llama: PreTrainedModel) -> None:
    with (
        pytest.raises(InvalidPatch, match=r"model\.layers\.0\.mlp"),
        patched(llama, Replace("layers.0.mlp", Zero())),
    ):
        pass
