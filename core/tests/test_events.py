"""Events: records of what happened, which a listener can't change under the next one."""

from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest

from separata.events import Event, RunStarted


@pytest.mark.parametrize("cls", get_args(Event))
def test_an_event_is_a_frozen_record(cls: Any) -> None:
    assert cls.__attrs_props__.is_frozen


def test_runs_do_not_share_the_settings_they_report() -> None:
    first, second = RunStarted("toy", "fit"), RunStarted("toy", "fit")
    first.config["nu"] = 1
    assert second.config == {}


def test_every_event_of_the_module_can_be_told() -> None:
    from separata import events

    defined = {cls for cls in vars(events).values() if isinstance(cls, type) and attrs.has(cls)}
    assert defined == set(get_args(Event))
