"""Fake arms on fixed outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from separata_tpg import placebo


def test_intervals_cover_and_spreads_are_the_closed_form(random: np.random.Generator) -> None:
    series = random.normal(size=1000)
    rows = placebo(series, [0, 2], n=400)
    # Four standard errors of a share and of a spread over 400 draws.
    assert (abs(rows["coverage"] - 0.95) < 0.05).all()
    assert rows["spread"][0] == pytest.approx(2 * np.sqrt((series**2).mean() / 1000), rel=0.15)


def test_fake_arms_differ_from_those_of_a_simulation_with_the_same_seed() -> None:
    arms = np.random.default_rng(0).random(2000) < 0.5
    found = placebo(arms.astype(float), 0, n=50, seed=0)
    assert abs(found["mean"][0]) < 4 * found["spread"][0] / 50**0.5


def test_the_batch_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    series = np.sin(np.arange(200.0))
    whole = placebo(series, 1, n=20)
    monkeypatch.setattr("separata_tpg.placebos.BATCH_VALUES", 600)
    np.testing.assert_allclose(placebo(series, 1, n=20), whole, rtol=1e-12)
