"""The proofs themselves, on untrained models of the same shape: their figures mean nothing, their sums must hold."""

from __future__ import annotations

from typing import Any

import pytest

from separata.claims import Trial
from separata.registry import Registry
from separata_kit_llm import tiny
from separata_oea import claims

TRIAL = Trial("oea", Registry(()))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows, and no training."""

    def untrained(_: Trial, seed: int) -> Any:
        return tiny.qwen3_moe(seed=seed, hidden=32, layers=2, experts=16, expert_hidden=16)

    monkeypatch.setattr(claims, "_model", untrained)
    for name, value in {"ROWS": 4, "BATCH": 4, "LENGTH": 8, "SEEDS": 2}.items():
        monkeypatch.setattr(claims, name, value)


def test_the_worst_seed_counts() -> None:
    found = claims.fewer_experts(TRIAL)
    ratios = [row["oea_experts"] / row["plain_experts"] for row in found.table]  # type: ignore[operator]
    assert found.measured == max(ratios)
    assert len(ratios) == 2


def test_shares_are_of_the_rise_of_top_k0() -> None:
    found = claims.quality_kept(TRIAL)
    shares = [row["oea_rise"] / row["pruned_rise"] for row in found.table]  # type: ignore[operator]
    assert found.measured == max(shares)
    assert set(found.peers) == {"top-k0", "popular experts (Lynx)"}


def test_prompts_are_compared_bit_for_bit() -> None:
    assert claims.prompt_untouched(TRIAL).measured == 0


def test_predictions_are_held_against_measurements() -> None:
    found = claims.load_predicted(TRIAL)
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in found.table]  # type: ignore[operator]
    assert found.measured == max(errors)
