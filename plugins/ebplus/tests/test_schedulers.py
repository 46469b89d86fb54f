"""Schedulers refuse contradictions, count capped outputs as censored, and stay mixed until they know."""

from __future__ import annotations

from typing import Any

import pytest

from separata_ebplus import (
    EBPlus,
    EBPlusConfig,
    ExclusiveBatching,
    Finished,
    MixedBatching,
    Observation,
    TimingModel,
    Waiting,
)
from separata_ebplus.errors import InvalidObservation

TIMING = TimingModel.from_constants(
    alpha_prefill=30e-3, beta_prefill=3e-5, alpha_decode=12e-3, beta_decode=2e-5
)
CONFIG = EBPlusConfig(slots=64, window=64, refresh_completions=16)


@pytest.fixture(params=["mb", "eb", "ebplus"])
def made(request: pytest.FixtureRequest) -> Any:
    kinds = {
        "mb": lambda: MixedBatching(CONFIG),
        "eb": lambda: ExclusiveBatching(2, CONFIG),
        "ebplus": lambda: EBPlus(TIMING, CONFIG),
    }
    return kinds[request.param]()


def test_a_clock_that_goes_backwards_is_refused(made: Any) -> None:
    made.step(Observation(2.0, 64))
    with pytest.raises(InvalidObservation, match="clock"):
        made.step(Observation(1.0, 64))


def test_a_clock_that_is_no_number_is_refused(made: Any) -> None:
    with pytest.raises(InvalidObservation):
        made.step(Observation(float("nan"), 64))


def test_unknown_ids_in_finished_are_refused(made: Any) -> None:
    with pytest.raises(InvalidObservation, match="request 7"):
        made.step(Observation(0.0, 64, finished=[Finished(7, 3)]))


def test_a_request_that_finishes_twice_is_refused(made: Any) -> None:
    made.step(Observation(0.0, 64, [Waiting(0, 5, 0.0)]))
    made.step(Observation(1.0, 64, finished=[Finished(0, 3)]))
    with pytest.raises(InvalidObservation):
        made.step(Observation(2.0, 64, finished=[Finished(0, 3)]))


@pytest.mark.parametrize("wrong", [{"free": -1}, {"pending": -1}, {"used": -1}])
def test_negative_counts_are_refused(made: Any, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidObservation):
        made.step(Observation(**({"time": 0.0, "free": 1} | wrong)))


def served(capped: bool, steps: int = 200) -> EBPlus:
    """64 slots of which one ends each iteration after 40 tokens and is refilled."""
    made = EBPlus(TIMING, CONFIG)
    made.step(Observation(0.0, 64, [Waiting(key, 100, 0.0) for key in range(64)]))
    for turn in range(steps):
        running = [(turn + place, 1) for place in range(64)]
        made.step(Observation(float(turn + 1), 0, running=running))
        done, fresh = [Finished(turn, 40, capped)], [Waiting(turn + 64, 100, 0.0)]
        made.step(Observation(turn + 1.5, 1, fresh, running[1:], finished=done))
    return made


def test_capped_outputs_are_no_deaths() -> None:
    prior = EBPlus(TIMING, CONFIG)
    ended, capped = served(capped=False), served(capped=True)
    assert ended.k != prior.k
    assert (capped.k, capped.theta) == (prior.k, prior.theta)


def test_an_empty_window_keeps_the_priors_and_stays_mixed() -> None:
    made = EBPlus(TIMING, CONFIG)
    before = made.theta
    for turn in range(50):
        made.step(Observation(float(turn), 64))
    assert (made.mode, made.theta) == ("MB", before)
