"""Claims and benchmarks: whatever is declared is there, and what is cheap runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from separata.claims import Trial
from separata.registry import Registry, load_object
from separata_modex import _plugin, benchmarks, claims, peers

TRIAL = Trial("modex", Registry(()))


@pytest.mark.parametrize("claim", list(_plugin.separata_claims()), ids=lambda claim: claim.name)
def test_each_proof_is_there(claim: Any) -> None:
    assert load_object(claim.proof, "modex").__doc__


def test_moments_are_the_same_on_both_sides() -> None:
    first = next(benchmarks.moments(TRIAL))
    assert first.size == 10
    for ours, theirs in zip(first.ours(), first.peer(), strict=True):
        assert ours.shape == (benchmarks.ROWS, 10)
        torch.testing.assert_close(ours, theirs)


def test_both_forward_passes_answer_each_row() -> None:
    first = next(benchmarks.forwards(TRIAL))
    mean, _ = first.ours()
    assert mean.shape == first.peer().shape
    torch.testing.assert_close(mean.sum(-1), torch.ones(len(mean)))


def test_an_ensemble_is_scored_by_its_entropy_too() -> None:
    ensemble, single = peers.DeepEnsemble(peers.SoftmaxClassifier()), peers.SoftmaxClassifier()
    assert claims._uncertainties("five", ensemble) == {
        "five": ensemble.uncertainty,
        "five, entropy": ensemble.entropy,
    }
    assert claims._uncertainties("one", single) == {"one": single.uncertainty}


def test_the_long_tail_thins_to_a_twentieth() -> None:
    labels = np.repeat(np.arange(claims.KNOWN_CLASSES), 100)
    kept = claims._long_tailed(labels, np.random.default_rng(0))
    counts = np.bincount(labels[kept])
    assert len(set(kept.tolist())) == len(kept)
    assert counts[0] == 100
    assert counts[-1] == 5
    assert (np.diff(counts) < 0).all()
    # The share falls by one factor from class to class.
    np.testing.assert_allclose(counts[1:] / counts[:-1], 0.05 ** (1 / 7), atol=0.05)
