"""The packed forwards that are timed compute what each request alone would get."""

from __future__ import annotations

from typing import Any

import pytest

from separata_ebplus import TimingModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from separata_ebplus.profiling import _packed, profile  # noqa: E402


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 97}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(**sizes, **heads)
    return transformers.LlamaForCausalLM(config).eval()


def test_packed_logits_equal_those_of_each_request_alone(model: Any) -> None:
    context, decoding, prompt = 5, 3, 7
    inputs = _packed(model, prompt, decoding, context)
    whole = [layer.keys.clone() for layer in inputs["cache"].layers]
    values = [layer.values.clone() for layer in inputs["cache"].layers]
    with torch.no_grad():
        packed = model(**(inputs | {"logits_to_keep": 0})).logits[0]
        alone = model(input_ids=inputs["input_ids"][:, decoding:]).logits[0]
        torch.testing.assert_close(packed[decoding:], alone, rtol=1e-4, atol=1e-5)
        for row in range(decoding):
            past = transformers.DynamicCache(config=model.config)
            part = slice(row * context, (row + 1) * context)
            for layer, (keys, vals) in enumerate(zip(whole, values, strict=True)):
                past.update(keys[:, :, part].clone(), vals[:, :, part].clone(), layer)
            one = {"position_ids": torch.tensor([[context]]), "cache": past, "use_cache": True}
            alone = model(input_ids=inputs["input_ids"][:, row : row + 1], **one).logits[0, 0]
            torch.testing.assert_close(packed[row], alone, rtol=1e-4, atol=1e-5)


def test_a_profile_has_every_phase_and_can_be_fitted(model: Any) -> None:
    sizes = {"prefill": (4, 8), "decode": (2, 4), "mixed": ((8, 0.5), (16, 0.5))}
    rows = list(profile(model, **sizes, context=4, rounds=1))
    assert [row["phase"] for row in rows] == ["prefill"] * 2 + ["decode"] * 2 + ["mixed"] * 2
    assert [row["decode_share"] for row in rows] == [0, 0, 1, 1, 0.5, 0.5]
    assert all(row["seconds"] > 0 for row in rows)
    slower = [row | {"seconds": 1e-3 * row["tokens"] + 1e-2} for row in rows]
    assert TimingModel().fit(slower).beta_mixed(0.5) == pytest.approx(1e-3)
