"""Tiny models: bytes as tokens, seeded weights, a loss that falls, files that come back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from separata_kit_llm import errors, tiny
from separata_kit_llm.text import read_text

SMALL = {"hidden": 32, "layers": 2, "heads": 2}


@pytest.fixture(scope="module")
def tokens() -> torch.Tensor:
    return tiny.byte_tokens(read_text("python-topics")[:40_000])


def moe(seed: int = 0) -> torch.nn.Module:
    return tiny.qwen3_moe(seed=seed, experts=8, active=2, expert_hidden=16, **SMALL)


def test_bytes_are_tokens() -> None:
    assert tiny.byte_tokens("aé").tolist() == [97, 0xC3, 0xA9]


def test_what_is_held_out_is_the_end_of_the_text() -> None:
    train, test = tiny.held_out(torch.arange(10), 0.2)
    assert train.tolist() == list(range(8))
    assert test.tolist() == [8, 9]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_leaves_nothing_is_refused(share: float) -> None:
    with pytest.raises(errors.InvalidOption, match="share"):
        tiny.held_out(torch.arange(10), share)


@pytest.mark.parametrize("build", [lambda seed: tiny.llama(seed=seed, **SMALL), moe])
def test_the_seed_alone_decides_the_weights(build: object) -> None:
    state = torch.random.get_rng_state()
    first, again, other = (build(seed).state_dict() for seed in (0, 0, 1))  # type: ignore[operator]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])


@pytest.mark.parametrize("build", [lambda: tiny.llama(seed=0, **SMALL), moe])
def test_the_loss_falls_from_that_of_guessing(build: object, tokens: torch.Tensor) -> None:
    losses = tiny.pretrain(build(), tokens, steps=30, batch=8, length=64, lr=1e-2)  # type: ignore[operator]
    assert losses[0] == pytest.approx(torch.log(torch.tensor(256.0)).item(), abs=0.2)
    assert losses[-1] < 3.5


def test_training_repeats_bit_for_bit_and_takes_another_optimizer(tokens: torch.Tensor) -> None:
    def trained(seed: int) -> tuple[list[float], torch.Tensor]:
        model = tiny.llama(seed=0, **SMALL)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = tiny.pretrain(model, tokens, steps=4, batch=4, length=32, seed=seed, optimizer=optimizer)
        return losses, model.lm_head.weight.detach()

    (losses, weight), (again, same), (other, _) = trained(0), trained(0), trained(1)
    assert losses == again
    assert torch.equal(weight, same)
    assert losses != other


def test_a_saved_model_comes_back(tmp_path: Path, tokens: torch.Tensor) -> None:
    model = moe()
    tiny.save(model, tmp_path)
    ids = tokens[None, :20]
    assert torch.equal(tiny.load(tmp_path)(ids).logits, model(ids).logits)


def test_a_text_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(errors.InvalidOption, match="5 tokens"):
        tiny.pretrain(tiny.llama(seed=0, **SMALL), torch.arange(5), steps=1)


def test_no_steps_are_refused(tokens: torch.Tensor) -> None:
    with pytest.raises(errors.InvalidOption, match="steps"):
        tiny.pretrain(tiny.llama(seed=0, **SMALL), tokens, steps=0)
