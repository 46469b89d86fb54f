"""What every scheduler keeps: it goes on from its state, and decides from what it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import attrs
import torch

from separata.records import Offer

from .checks import CheckFailed, NotOffered, need, same, suite
from .examples import SchedulerExample

PLAIN = (bool, int, float, str, type(None))


@attrs.frozen
class SchedulerSubject:
    """A scheduler on trial."""

    example: SchedulerExample

    def observations(self, seed: int = 0) -> Sequence[Any]:
        """One run's observations."""
        found = self.example.observations(torch.Generator().manual_seed(seed))
        if len(found) < 4:
            raise CheckFailed("the example gives fewer than four observations")
        return found


def goes_on_from_its_state(subject: SchedulerSubject) -> None:
    """Stopped in the middle and built again from its state, it decides as if nothing had happened."""
    observations = subject.observations()
    half = len(observations) // 2
    whole, stopped = subject.example.make(), subject.example.make()
    expected = [deepcopy(whole.step(observation)) for observation in observations][half:]
    for observation in observations[:half]:
        stopped.step(observation)
    state = deepcopy(stopped.state_dict())
    again = subject.example.make()
    again.load_state_dict(state)
    found = [deepcopy(again.step(observation)) for observation in observations[half:]]
    need(
        same(expected, found), "after load_state_dict it decides otherwise than the run that was not stopped"
    )


def keeps_state_plain(subject: SchedulerSubject) -> None:
    """Its state is tensors, numbers, texts, lists and tables, so that it is saved without a pickle."""
    scheduler = subject.example.make()
    for observation in subject.observations():
        scheduler.step(observation)
    strange = sorted({type(leaf).__name__ for leaf in _state_leaves(scheduler.state_dict())})
    need(not strange, f"its state holds {', '.join(strange)}")


def looks_not_ahead(subject: SchedulerSubject) -> None:
    """What it decides does not depend on what comes later, and is not changed afterwards."""
    observations = subject.observations()
    half = len(observations) // 2
    scheduler = subject.example.make()
    returned = [scheduler.step(observation) for observation in observations[:half]]
    early = deepcopy(returned)
    for observation in observations[half:]:
        scheduler.step(observation)
    need(same(early, returned), "a decision changes after it was given")
    # Copies one by one: an observation that is a view into the whole run shows nothing of the rest.
    other = subject.example.make()
    alone = [deepcopy(other.step(_alone(observation))) for observation in observations[:half]]
    need(same(early, alone), "its first decisions differ when it can't see the rest of the run")


def hides_no_randomness(subject: SchedulerSubject) -> None:
    """Two runs from the beginning decide the same, whatever the global random state."""
    with torch.random.fork_rng(devices=[]):
        runs = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            scheduler = subject.example.make()
            runs.append([deepcopy(scheduler.step(observation)) for observation in subject.observations()])
    need(same(runs[0], runs[1]), "its decisions depend on the global seed")


def refuses_bad_observations(subject: SchedulerSubject) -> None:
    """An observation that makes no sense is refused with a ValueError, and leaves the state alone."""
    if not subject.example.bad:
        raise NotOffered("the example names no bad observation")
    for bad in subject.example.bad:
        scheduler = subject.example.make()
        scheduler.step(subject.observations()[0])
        before = deepcopy(scheduler.state_dict())
        try:
            scheduler.step(bad)
        except ValueError:
            need(same(before, scheduler.state_dict()), f"refusing {bad!r} changes its state"[:120])
        else:
            need(False, f"it takes {bad!r}"[:120])


def subject(_: str, __: Offer, example: SchedulerExample) -> SchedulerSubject:
    """The scheduler of an example."""
    return SchedulerSubject(example)


CHECKS = suite(
    goes_on_from_its_state,
    keeps_state_plain,
    looks_not_ahead,
    hides_no_randomness,
    refuses_bad_observations,
)


def _alone(observation: Any) -> Any:
    """A copy without what lies behind it: deepcopy of a tensor brings the whole storage along."""
    if isinstance(observation, torch.Tensor):
        return observation.clone()
    if isinstance(observation, dict):
        return {key: _alone(value) for key, value in observation.items()}
    if isinstance(observation, list | tuple):
        return type(observation)(_alone(value) for value in observation)
    return deepcopy(observation)


def _state_leaves(value: Any) -> list[Any]:
    """What in a state is neither a tensor nor plain."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _state_leaves(key) + _state_leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _state_leaves(item)]
    return [] if isinstance(value, (*PLAIN, torch.Tensor)) else [value]
