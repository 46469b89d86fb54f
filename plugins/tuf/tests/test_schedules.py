"""When schedules refresh: their own sums, jumps, resuming, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from separata_tuf.errors import InvalidObservation, InvalidSetting
from separata_tuf.periods import optimal_periods
from separata_tuf.schedules import FOREVER, Constant, Geometric, Listed, Schedule, Triggered, optimal


def refreshed(schedule: Schedule, updates: int) -> list[int]:
    return [step for step in range(1, updates + 1) if schedule.step()]


def test_a_constant_refreshes_at_multiples() -> None:
    assert refreshed(Constant(7), 30) == [7, 14, 21, 28]


def test_geometric_periods_add_up_without_drift() -> None:
    schedule = Geometric(0.9, 2.5, longest=math.inf)
    times = refreshed(schedule, 4000)
    sums = np.cumsum(2.5 * 0.9 ** (-2 / 3 * np.arange(len(times))))
    assert np.abs(np.array(times) - sums).max() <= 0.5
    assert schedule.length(3) == pytest.approx(2.5 / 0.9**2)


def test_a_thousand_updates_at_099_nearly_double_in_a_hundred_refreshes() -> None:
    assert Geometric(0.99).length(100) == pytest.approx(1954.28, abs=0.01)


def test_growth_stops_at_the_longest() -> None:
    times = np.array(refreshed(Geometric(0.5, 3, longest=10), 200))
    lengths = np.diff(times, prepend=0)
    assert lengths[0] == 3
    np.testing.assert_array_equal(lengths[3:], 10)
    assert np.abs(times[:3] - np.cumsum([3, 3 * 0.5 ** (-2 / 3), 3 * 0.5 ** (-4 / 3)])).max() <= 0.5


def test_a_period_beyond_all_counts_is_no_overflow() -> None:
    schedule = Geometric(0.01, 1000, longest=math.inf)
    assert schedule._end(10**6) == FOREVER


def test_optimal_refreshes_at_the_ends_of_its_periods() -> None:
    lengths = optimal_periods(0.9, 500, 12)
    assert refreshed(optimal(0.9, 500, 12), 600) == np.cumsum(lengths).tolist()


def test_jumps_over_several_ends_refresh_once() -> None:
    schedule = Constant(5)
    assert [schedule.step({"step": step}) for step in (3, 17, 18, 20)] == [False, True, False, True]
    assert schedule.refreshes == 4


@pytest.mark.parametrize("td", [0.01, [0.01, -0.01], torch.full((3,), -0.01)])
def test_triggered_waits_for_small_differences(td: Any) -> None:
    schedule = Triggered(shortest=2)
    assert not schedule.step({"step": 1, "td": td})
    assert schedule.step({"step": 2, "td": td})
    for step in range(3, 11):
        assert schedule.step({"step": step, "td": 1 / schedule.refreshes**2}) is False
    assert schedule.bound == 0.25


def test_triggered_needs_patience_and_ends_at_the_longest() -> None:
    schedule = Triggered(patience=3, longest=6)
    sizes = [0.1, 0.1, 5.0, 0.1, 0.1, 0.1, *[9.0] * 6]
    times = [step for step, td in enumerate(sizes, 1) if schedule.step({"step": step, "td": td})]
    assert times == [6, 12]


def test_a_threshold_can_keep_step_with_the_contraction() -> None:
    schedule = Triggered("gamma^n", scale=2.0, gamma=0.5)
    for expected in (2.0, 1.0, 0.5):
        assert schedule.bound == expected
        assert schedule.step({"td": 0.0})


def test_a_running_mean_forgets_at_a_refresh() -> None:
    schedule = Triggered(decay=0.9)
    assert not schedule.step({"td": 4.0})
    assert schedule.mean == pytest.approx(4)
    schedule.step({"td": 0.0})
    assert schedule.mean == pytest.approx(3.6)


def test_state_of_another_schedule_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="goes on from"):
        Constant(3).load_state_dict(Triggered().state_dict())


@pytest.mark.parametrize("observation", [{"step": 1}, {"step": 7.5}, {"step": "8"}, {"step": True}])
def test_updates_that_make_no_sense_are_refused(observation: Any) -> None:
    schedule = Constant(3)
    schedule.step({"step": 4})
    with pytest.raises(InvalidObservation):
        schedule.step(observation)


@pytest.mark.parametrize("observation", [None, {"td": math.nan}, {"td": []}, {"td": "small"}])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_differences_that_make_no_sense_are_refused(observation: Any) -> None:
    with pytest.raises(InvalidObservation, match="td is"):
        Triggered().step(observation)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(0),
        lambda: Geometric(1.0),
        lambda: Geometric(0.0),
        lambda: Geometric(0.9, 0.5),
        lambda: Geometric(0.9, 10, longest=5),
        lambda: Listed([]),
        lambda: Listed([3, 0]),
        lambda: Listed([2.5]),
        lambda: Triggered("n"),  # type: ignore[arg-type]
        lambda: Triggered("gamma^n"),
        lambda: Triggered(scale=0),
        lambda: Triggered(shortest=5, longest=4),
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(InvalidSetting):
        make()
