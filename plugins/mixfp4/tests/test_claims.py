"""Claims that cost little, and what the others are made of."""

import pytest

from separata.claims import Trial
from separata.registry import Registry
from separata_mixfp4 import _plugin, claims


@pytest.fixture
def trial():
    return Trial("mixfp4", Registry())


def test_every_claim_has_its_proof():
    for claim in _plugin.separata_claims():
        module, _, name = claim.proof.partition(":")
        assert module == claims.__name__
        assert callable(getattr(claims, name))


def test_the_crossover_holds(trial):
    evidence = claims.crossover_point(trial)
    assert evidence.bound.holds(evidence.measured)


def test_perplexities_are_compared_with_that_of_nvfp4():
    rows = [
        {"method": name, "perplexity": value}
        for name, value in (("exact", 8.0), ("nvfp4", 10.0), ("mixfp4", 9.0))
    ]
    evidence = claims._perplexity_evidence(rows)
    assert evidence.measured == pytest.approx(0.9)
    assert evidence.peers == {"exact": 0.8, "nvfp4": 1.0}
    assert evidence.bound.holds(evidence.measured)


def test_random_tensors_have_the_tails_they_are_named_for(trial):
    found = claims._synthetic(trial)

    def kurtosis(x):
        return (x.double().pow(4).mean() / x.double().square().mean() ** 2).item()

    # 3 and 6 for normal and Laplace numbers; no fourth moment for Student's t with 3 degrees.
    assert kurtosis(found["Gaussian"]) == pytest.approx(3, rel=0.02)
    assert kurtosis(found["Laplace"]) == pytest.approx(6, rel=0.05)
    assert kurtosis(found["Student t, 3"]) > 20
