"""Benchmarks: both sides in turns, the best time of each, and how it grows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from separata import benchmarks
from separata.benchmarks import Race, Result, Timing, bench, growth, race
from separata.errors import UnknownName
from separata.records import Benchmark
from separata.registry import Registry
from separata.testing import Site

RegistryOf = Callable[..., Registry]

HOOKS = """
@hookimpl
def separata_benchmarks():
    yield Benchmark("sums", says="A sum.", peer="numpy", run="separata_toy.benchmarks:sums")
    yield Benchmark("seeds", says="A seed.", peer="none", run="separata_toy.benchmarks:seeds")
"""
RACES = """
from separata.claims import Race

def sums(trial):
    for size in (10, 100, 1000):
        yield Race(size, lambda size=size: sum(range(size)), lambda size=size: sum(range(2 * size)))

def seeds(trial):
    yield Race(trial.seed, int, int)
"""
KEYS = ["slug", "case", "peer", "size", "ours_s", "peer_s", "ratio", "ours_growth", "peer_growth"]
sizes = st.lists(st.integers(1, 10**6), min_size=2, unique=True)


class Clock:
    """A clock that only the racers move on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(benchmarks.time, "perf_counter", lambda: self.now)

    def racer(self, *seconds: float) -> Callable[[], None]:
        left = list(seconds)

        def run() -> None:
            self.now += left.pop(0)

        return run


def test_both_sides_are_timed_in_turns() -> None:
    turns: list[str] = []
    race(Race(1, lambda: turns.append("ours"), lambda: turns.append("peer")), rounds=3)
    assert turns == ["ours", "peer"] * 4


def test_the_best_time_of_each_side_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    timing = race(Race(7, clock.racer(9, 3, 1, 2), clock.racer(9, 8, 6, 4)), rounds=3)
    assert timing == Timing(7, 1, 4)


def test_the_first_round_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert race(Race(7, clock.racer(1, 5, 6), clock.racer(1, 8, 7)), rounds=2) == Timing(7, 5, 7)


def test_the_ratio_says_how_many_times_as_fast_as_the_peer_ours_is() -> None:
    assert Timing(1, ours_s=2.0, peer_s=5.0).ratio == 2.5


@given(sizes, st.floats(-3, 3), st.floats(1e-6, 1e3))
def test_the_growth_of_an_exact_power_law_is_its_exponent(
    sizes: list[int], exponent: float, factor: float
) -> None:
    seconds = [factor * size**exponent for size in sizes]
    # Two sizes a part in a million apart leave ten digits of sixteen for the slope.
    assert growth(sizes, seconds) == pytest.approx(exponent, abs=1e-5)


@given(sizes, st.floats(-3, 3), st.floats(0.1, 10))
def test_growth_does_not_depend_on_the_unit_of_time(sizes: list[int], exponent: float, unit: float) -> None:
    assume(len(sizes) > 2)
    seconds = [size**exponent * (1 + size % 3) for size in sizes]
    scaled = [unit * second for second in seconds]
    assert growth(sizes, scaled) == pytest.approx(growth(sizes, seconds), rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("sizes", [[], [5], [5, 5, 5]])
def test_below_two_sizes_there_is_no_growth(sizes: list[int]) -> None:
    assert math.isnan(growth(sizes, [1.0 + place for place in range(len(sizes))]))


def result(*timings: Timing) -> Result:
    return Result(slug="toy", benchmark=Benchmark("sums", says="S.", peer="p", run="a:b"), timings=timings)


def test_a_result_fits_the_growth_of_each_side() -> None:
    found = result(*(Timing(size, 1e-3 * size, 1e-6 * size**2) for size in (10, 100, 1000)))
    assert (found.ours_growth, found.peer_growth) == (pytest.approx(1), pytest.approx(2))


def test_a_result_as_json_has_a_row_a_size_with_these_keys() -> None:
    rows = result(Timing(10, 1.0, 2.0), Timing(20, 2.0, 8.0)).as_json()
    assert [list(row) for row in rows] == [KEYS, KEYS]
    assert [(row["size"], row["ratio"]) for row in rows] == [(10, 2.0), (20, 4.0)]


def test_json_has_no_word_for_a_growth_that_there_is_not() -> None:
    (row,) = result(Timing(10, 1.0, 2.0)).as_json()
    assert json.dumps(row, allow_nan=False)
    assert row["ours_growth"] is None


@pytest.fixture
def registry(site: Site, registry_of: RegistryOf) -> Registry:
    site.add("toy", HOOKS, files={"benchmarks.py": RACES})
    return registry_of()


def test_a_plugins_benchmarks_are_run_over_their_sizes(registry: Registry) -> None:
    first, second = bench("toy", registry=registry, rounds=1)
    assert [timing.size for timing in first.timings] == [10, 100, 1000]
    assert (first.benchmark.name, second.benchmark.name) == ("sums", "seeds")


def test_a_benchmark_is_told_the_seed(registry: Registry) -> None:
    (only,) = bench("toy", ["seeds"], seed=4, rounds=1, registry=registry)
    assert only.timings[0].size == 4


def test_an_unknown_benchmark_is_answered_with_the_closest_ones(registry: Registry) -> None:
    with pytest.raises(UnknownName, match=r"no benchmark of toy named 'sum'\ndid you mean sums\?"):
        list(bench("toy", ["sum"], registry=registry))
