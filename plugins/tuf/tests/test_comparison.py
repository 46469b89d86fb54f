"""Schedules beside each other."""

from __future__ import annotations

import gymnasium
import pytest

from separata_tuf import MDP, compare
from separata_tuf.errors import InvalidSetting


def test_each_schedule_comes_at_its_best_number_of_periods(process: MDP) -> None:
    names = ("geometric", "constant", "anytime", "rate=0.5")
    scores = list(compare(process, 0.9, [3000], names, counts=(2, 20), seeds=(0, 1), first=50))
    assert [score.schedule for score in scores] == list(names)
    assert [score.periods for score in scores] == [20, 20, None, 20]
    # The same periods under another name.
    assert scores[0].error == scores[3].error
    alone = next(compare(process, 0.9, [3000], ["geometric"], counts=(2,), seeds=(0, 1)))
    assert alone.error > scores[0].error


def test_what_cannot_be_compared_is_refused(process: MDP) -> None:
    with pytest.raises(InvalidSetting, match="rate=half"):
        list(compare(process, 0.9, [100], ["rate=half"]))
    with pytest.raises(InvalidSetting, match="a budget of 3"):
        list(compare(process, 0.9, [3]))
    stepped = gymnasium.wrappers.TransformObservation(
        gymnasium.make("Blackjack-v1"), lambda seen: seen[0], gymnasium.spaces.Discrete(32)
    )
    with pytest.raises(InvalidSetting, match="errors need Q"):
        list(compare(stepped, 0.9, [20], sampling="behaviour", counts=[5]))
