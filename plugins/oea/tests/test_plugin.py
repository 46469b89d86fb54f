"""What is declared exists, and the public names lead to it."""

from __future__ import annotations

from typing import Any

import pytest

import separata_oea
from separata.registry import load_object
from separata_oea import _plugin


def test_public_names_lead_to_their_objects() -> None:
    assert {"OEAConfig", "patch_moe", "route", "register_router", "estimate_T"} <= set(separata_oea.__all__)
    for name in separata_oea.__all__:
        assert getattr(separata_oea, name) is not None


@pytest.mark.parametrize("claim", list(_plugin.separata_claims()), ids=lambda claim: claim.name)
def test_every_claim_has_its_proof(claim: Any) -> None:
    assert load_object(claim.proof, "oea").__doc__


@pytest.mark.parametrize("benchmark", list(_plugin.separata_benchmarks()), ids=lambda one: one.name)
def test_every_benchmark_has_its_races(benchmark: Any) -> None:
    assert load_object(benchmark.run, "oea").__doc__
