"""Each check of a scheduler catches the fault it is for, and no other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separata.testing.conformance import Case
from separata.testing.examples import SchedulerExample
from separata.testing.schedulers import CHECKS, SchedulerSubject


class RunningMean:
    """A right scheduler: decides the mean of what it has seen."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def step(self, observation: Any) -> Any:
        value = float(observation)
        if value != value:
            raise ValueError("the observation is not a number")
        self.total += value
        self.count += 1
        return self.total / self.count

    def state_dict(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total, self.count = state["total"], state["count"]


class ForgetsItsCount(RunningMean):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total = state["total"]


class KeepsAnObject(RunningMean):
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "self": RunningMean}


class ChangesWhatItGave(RunningMean):
    def __init__(self) -> None:
        super().__init__()
        self.given = torch.zeros(1)

    def step(self, observation: Any) -> Any:
        return self.given.fill_(super().step(observation))


class PeeksIntoTheRun(RunningMean):
    """Each observation is a view into the whole run: it reads the next one too."""

    def step(self, observation: Tensor) -> Any:
        behind = observation.storage_offset() + 1
        run = torch.empty(0).set_(observation.untyped_storage())
        return super().step(observation) + (float(run[behind]) if behind < len(run) else 0.0)


class DrawsFromTheGlobalState(RunningMean):
    def __init__(self) -> None:
        super().__init__()
        self.offset = 0.0

    def step(self, observation: Any) -> Any:
        if not self.count:
            self.offset = float(torch.rand(()))
        return super().step(observation) + self.offset

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "offset": self.offset}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.offset = state["offset"]


class TakesAnything(RunningMean):
    def step(self, observation: Any) -> Any:
        return super().step(torch.nan_to_num(torch.as_tensor(observation)))


class CountsBeforeItRefuses(RunningMean):
    def step(self, observation: Any) -> Any:
        self.count += 1
        decision = RunningMean.step(self, observation)
        self.count -= 1
        return decision


def failures(make: Any) -> list[str]:
    example = SchedulerExample(
        make=make,
        observations=lambda generator: list(torch.randn(8, generator=generator)),
        bad=[torch.tensor(float("nan"))],
    )
    return [
        check.name
        for check in CHECKS
        if Case("scheduler", "toy", check, SchedulerSubject(example)).run().state == "failed"
    ]


@pytest.mark.parametrize(
    ("make", "caught"),
    [
        (RunningMean, []),
        (ForgetsItsCount, ["goes-on-from-its-state"]),
        (KeepsAnObject, ["keeps-state-plain"]),
        (ChangesWhatItGave, ["looks-not-ahead"]),
        (PeeksIntoTheRun, ["looks-not-ahead"]),
        (TakesAnything, ["refuses-bad-observations"]),
        (CountsBeforeItRefuses, ["refuses-bad-observations"]),
    ],
)
def test_a_fault_fails_exactly_its_check(make: Any, caught: list[str]) -> None:
    assert failures(make) == caught


def test_a_hidden_seed_is_caught() -> None:
    # Two schedulers never agree then, so the checks that compare two of them see it as well.
    assert "hides-no-randomness" in failures(DrawsFromTheGlobalState)
