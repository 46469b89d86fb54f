"""The long-run variance against statsmodels and its definition."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS

from separata_tpg import long_run_variance
from separata_tpg.longrun import bandwidth


@pytest.mark.parametrize("lags", [0, 1, 12, 499])
def test_it_is_statsmodels_newey_west(lags: int, random: np.random.Generator) -> None:
    values = np.cumsum(random.normal(size=500)) * 0.1 + random.normal(size=500)
    peer = OLS(values, np.ones(500)).fit(cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": False})
    assert np.sqrt(long_run_variance(values, lags) / 500) == pytest.approx(peer.bse[0], rel=1e-9)


def test_no_lags_leave_the_variance(random: np.random.Generator) -> None:
    values = random.normal(size=(3, 50))
    np.testing.assert_allclose(long_run_variance(values, 0), values.var(-1), rtol=1e-12)


def test_a_local_mean_takes_a_trend_away(random: np.random.Generator) -> None:
    values = random.normal(size=5000) + np.linspace(-3, 3, 5000)
    drifting, local = (long_run_variance(values, 5, center=center) for center in ("global", "local"))
    assert drifting > 5 * local
    assert local == pytest.approx(1, abs=0.2)


def test_lags_reach_over_shared_outcomes() -> None:
    assert [bandwidth(1000, k) for k in (0, 5, 8)] == [10, 10, 16]
