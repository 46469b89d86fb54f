"""The estimator on a log: path, choice of k, interval, and settings it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from separata_tpg import TPGEstimator, choose, errors, truncated


def test_it_reports_what_the_function_finds(log: pd.DataFrame) -> None:
    fitted = TPGEstimator(3, baseline="past").fit(log)
    found = truncated(log["outcome"], log["arm"], 0.5, 3, baseline="past")
    assert (fitted.estimate_.value, fitted.se_) == (float(found.value), float(found.std_error))
    assert fitted.ci_ == fitted.estimate_.interval(0.95)
    assert (fitted.k_, fitted.n_steps_, len(fitted.path_)) == (3, 2000, 1)


def test_the_path_has_a_row_for_each_k(log: pd.DataFrame) -> None:
    fitted = TPGEstimator([5, 0, 2], edge="drop").fit(log)
    assert fitted.path_["k"].tolist() == [0, 2, 5]
    assert fitted.path_["std_error"].is_monotonic_increasing
    assert f"k = {fitted.k_}" in fitted.summary()


def test_lepski_mostly_stops_where_memory_ends_and_never_before(random: np.random.Generator) -> None:
    found: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(60):
        arms = random.integers(0, 2, 2000)
        plain = arms - 0.5 + 0.1 * random.normal(size=2000)
        for reach, outcomes in ((0, plain), (1, plain + 2 * np.roll(arms - 0.5, 1))):
            found[reach].append(choose([truncated(outcomes, arms, 0.5, k) for k in range(4)]))
    for reach, chosen in found.items():
        # Each of the larger k passes at 1.5 standard errors in 87 %, so that all do in well above half.
        assert min(chosen) >= reach
        assert chosen.count(reach) > 30


def test_blocks_are_steps(log: pd.DataFrame) -> None:
    coins = np.repeat(np.random.default_rng(0).integers(0, 2, 200), 10)
    fitted = TPGEstimator(1, block="10min", time="time").fit(log.assign(arm=coins))
    means = log["outcome"].to_numpy().reshape(-1, 10).mean(1)
    assert fitted.n_steps_ == 200
    assert fitted.estimate_.value == pytest.approx(float(truncated(means, coins[::10], 0.5, 1).value))


def test_a_long_reach_is_warned_of(log: pd.DataFrame) -> None:
    with pytest.warns(errors.TPGNotice, match="a tenth of the 2000 steps"):
        TPGEstimator(200).fit(log)
    with pytest.raises(errors.InvalidSetting, match="k is 2000 for 2000 steps"):
        TPGEstimator(2000).fit(log)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": -1}, "k is -1"),
        ({"k": "best"}, "k is 'best'"),
        ({"k": []}, r"k is \[\]"),
        ({"k": 1.5}, "k is 1.5"),
        ({"baseline": "future"}, "baseline is 'future'"),
        ({"form": "ipw"}, "form is 'ipw'"),
        ({"edge": "wrap"}, "edge is 'wrap'"),
        ({"center": "none"}, "center is 'none'"),
        ({"impute": "mean"}, "impute is 'mean'"),
        ({"discount": 1.1}, "discount is 1.1"),
        ({"level": 1.0}, "level is 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(
    settings: dict[str, object], message: str, log: pd.DataFrame
) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        TPGEstimator(**settings).fit(log)  # type: ignore[arg-type]
