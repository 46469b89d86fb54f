"""Plans from a process and from a pilot."""

from __future__ import annotations

import pandas as pd
import pytest

from separata_tpg import MDP, TPGEstimator, errors, exact, plan
from separata_tpg.planning import minimum_detectable_effect

STILL = MDP([[[0.7, 0.3], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]], [[0, 5], [1, 6]], 10)


def test_an_effect_is_detectable_at_2_8_standard_errors() -> None:
    assert minimum_detectable_effect(1.0) == pytest.approx(1.959964 + 0.841621, abs=1e-6)


def test_a_process_that_never_changes_reaches_as_far_as_asked() -> None:
    rows = plan(STILL, [50, 200], [0, 2])
    assert rows["steps"].tolist() == [50, 50, 200, 200]
    longer = MDP(STILL.transitions[0], STILL.rewards[0], 200)
    assert rows["std_error"][3] == pytest.approx(exact.variance(longer, 2) ** 0.5)
    assert rows["bias"][3] == pytest.approx(exact.mean(longer, 2) - exact.gate(longer))


def test_a_changing_process_ends_where_it_ends(process: MDP) -> None:
    assert len(plan(process, [20], [1])) == 1
    with pytest.raises(errors.InvalidSetting, match="the process ends at 30"):
        plan(process, [31], [1])
    with pytest.raises(errors.InvalidSetting, match="lengths of at least 2"):
        plan(process, [], [1])


def test_a_pilot_is_scaled_by_the_root_of_its_length(log: pd.DataFrame) -> None:
    pilot = TPGEstimator([0, 3]).fit(log)
    rows = plan(pilot, [2000, 8000])
    assert rows["std_error"][2] == pytest.approx(pilot.path_["std_error"][0] / 2)
    assert rows["std_error"][1] == pytest.approx(pilot.path_["std_error"][1])
