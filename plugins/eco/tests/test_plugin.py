from __future__ import annotations

import pytest

from separata.registry import load_object
from separata_eco import _plugin


@pytest.mark.parametrize("claim", list(_plugin.separata_claims()), ids=lambda claim: claim.name)
def test_every_claim_has_its_proof(claim: object) -> None:
    assert load_object(claim.proof, "eco").__doc__


@pytest.mark.parametrize("benchmark", list(_plugin.separata_benchmarks()), ids=lambda found: found.name)
def test_every_benchmark_has_its_races(benchmark: object) -> None:
    assert load_object(benchmark.run, "eco").__doc__
