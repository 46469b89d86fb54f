"""Placement: one accelerator in a process, as it was asked for or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from separata import hookimpl, placement, registry
from separata.catalog import Catalogue
from separata.errors import PlacementError
from separata.placement import Placement
from separata.registry import Registry

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")


@pytest.fixture(autouse=True)
def _unplaced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that no launcher started and that has no accelerator yet."""
    from accelerate.state import AcceleratorState, GradientState, PartialState

    states = (PartialState, AcceleratorState, GradientState)
    before = [dict(state._shared_state) for state in states]
    for variable in [name for name in os.environ if name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr(placement, "_built", [])
    empty = Registry({}, known=Catalogue({}, frozenset()))
    monkeypatch.setattr(registry, "default", lambda: empty)
    for state in states:
        state._shared_state.clear()
    rng = torch.get_rng_state()
    yield
    torch.set_rng_state(rng)
    for state, held in zip(states, before, strict=True):
        state._shared_state.clear()
        state._shared_state.update(held)


def test_the_same_placement_gives_the_same_accelerator() -> None:
    assert Placement(strategy="cpu").accelerator() is Placement(strategy="cpu").accelerator()


def test_on_cpu_the_work_is_on_the_cpu() -> None:
    assert Placement(strategy="cpu").accelerator().device.type == "cpu"


def test_another_placement_in_the_same_process_is_refused() -> None:
    Placement(strategy="cpu").accelerator()
    with pytest.raises(PlacementError, match="use one placement in a process"):
        Placement(strategy="cpu", seed=1).accelerator()


def test_the_accelerator_in_force_is_the_one_that_was_placed() -> None:
    placed = Placement(strategy="cpu", seed=3).accelerator()
    assert placement.current() is placed


def test_without_a_placement_the_default_one_comes_into_force() -> None:
    assert placement.current() is Placement().accelerator()


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_spreading_without_a_launcher_is_refused(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    with pytest.raises(PlacementError, match=r"no launcher started this process\nstart it with torchrun"):
        Placement(strategy=strategy).accelerator()


def test_sharding_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(PlacementError, match="there is no GPU here"):
        Placement(strategy="fsdp2").accelerator()


def test_other_processes_than_asked_for_are_refused() -> None:
    with pytest.raises(
        PlacementError, match=r"2 processes were asked for, 1 are running\n.*--nproc-per-node 2"
    ):
        Placement(strategy="cpu", processes=2).accelerator()


def test_a_refused_placement_is_not_in_force() -> None:
    with pytest.raises(PlacementError):
        Placement(strategy="ddp").accelerator()
    assert Placement(strategy="cpu").accelerator().num_processes == 1


class Cluster:
    """A site's own set-up: one accelerator with as many processes as it says."""

    def __init__(self, processes: int) -> None:
        self.num_processes = processes


def supplying(answer: object) -> object:
    """A plugin that answers every placement so."""
    return SimpleNamespace(separata_placement=hookimpl(lambda placement: answer))


@pytest.mark.parametrize("strategy", ["one", "cpu", "auto"])
def test_a_site_may_supply_its_own_accelerator(strategy: Any) -> None:
    cluster = Cluster(1)
    registry.default().listen(supplying(cluster))
    assert Placement(strategy=strategy).accelerator() is cluster


def test_what_a_site_supplies_is_checked_like_our_own() -> None:
    registry.default().listen(supplying(Cluster(4)))
    with pytest.raises(PlacementError, match="1 processes were asked for, 4 are running"):
        Placement(strategy="one").accelerator()


def test_a_site_that_answers_nothing_leaves_it_to_us() -> None:
    registry.default().listen(supplying(None))
    assert isinstance(Placement(strategy="cpu").accelerator(), accelerate.Accelerator)


@pytest.mark.parametrize("answer", [None, Cluster(1)], ids=["ours", "the site's"])
def test_the_seed_is_in_force_whoever_builds_the_accelerator(answer: object) -> None:
    registry.default().listen(supplying(answer))
    Placement(strategy="cpu", seed=11).accelerator()
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(11)))


@pytest.mark.parametrize(
    "changes", [{"strategy": "tpu"}, {"processes": 0}, {"precision": "int4"}], ids=lambda c: next(iter(c))
)
def test_a_placement_that_does_not_exist_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Placement(**changes)


def test_the_device_of_small_work_is_told_without_an_accelerator() -> None:
    assert Placement(strategy="cpu").device() == torch.device("cpu")
    assert placement._built == []


def test_without_a_gpu_the_device_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert Placement().device() == torch.device("cpu")


def test_with_a_gpu_the_device_is_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert Placement().device() == torch.device("cuda")


def test_as_many_launched_processes_as_asked_for_are_one_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    cluster = Cluster(2)
    registry.default().listen(supplying(cluster))
    assert Placement(strategy="ddp", processes=2).accelerator() is cluster
