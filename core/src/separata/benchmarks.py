"""Speed against a peer: both timed in turns in one process, over growing sizes, as a ratio."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from . import registry as registries
from .records import Benchmark
from .registry import Registry, load_object, select
from .trials import Trial


@attrs.frozen
class Race:
    """One size at which ours is timed against the peer.

    Args:
        size: The size, in the benchmark's own measure.
        ours: Does the work once, our way.
        peer: Does the same work once, the peer's way.
    """

    size: int
    ours: Callable[[], object]
    peer: Callable[[], object]


@attrs.frozen
class Timing:
    """The best time of each side at one size.

    Args:
        size: The size.
        ours_s: Our best time in seconds.
        peer_s: The peer's best time in seconds.
    """

    size: int
    ours_s: float
    peer_s: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer ours is; above 1 ours wins."""
        return self.peer_s / self.ours_s


def race(entry: Race, *, rounds: int = 5) -> Timing:
    """Time both sides in turns, after one round that does not count, and take the best of each.

    Turns and minima keep the load of the machine out of the ratio: both sides meet the same noise.
    """
    ours: list[float] = []
    peer: list[float] = []
    for turn in range(rounds + 1):
        for side, seconds in ((entry.ours, ours), (entry.peer, peer)):
            start = time.perf_counter()
            side()
            if turn:
                seconds.append(time.perf_counter() - start)
    return Timing(entry.size, min(ours), min(peer))


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent of time against size: the least-squares slope in the log-log plane; NaN below two sizes."""
    if len(set(sizes)) < 2:
        return math.nan
    xs, ys = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    centre_x, centre_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - centre_x) ** 2 for x in xs)
    return sum((x - centre_x) * (y - centre_y) for x, y in zip(xs, ys, strict=True)) / spread


@attrs.frozen(kw_only=True)
class Result:
    """A benchmark's timings with how each side grows."""

    slug: str
    benchmark: Benchmark
    timings: tuple[Timing, ...]

    @property
    def ours_growth(self) -> float:
        """The exponent with which our time grows with the size."""
        return growth([t.size for t in self.timings], [t.ours_s for t in self.timings])

    @property
    def peer_growth(self) -> float:
        """The exponent with which the peer's time grows with the size."""
        return growth([t.size for t in self.timings], [t.peer_s for t in self.timings])

    def as_json(self) -> list[dict[str, object]]:
        """One row a size, as plain JSON values."""
        return [
            {
                "slug": self.slug,
                "case": self.benchmark.name,
                "peer": self.benchmark.peer,
                "size": timing.size,
                "ours_s": timing.ours_s,
                "peer_s": timing.peer_s,
                "ratio": timing.ratio,
                "ours_growth": finite(self.ours_growth),
                "peer_growth": finite(self.peer_growth),
            }
            for timing in self.timings
        ]


def bench(
    slug: str,
    names: Iterable[str] = (),
    *,
    seed: int = 0,
    rounds: int = 5,
    registry: Registry | None = None,
) -> Iterator[Result]:
    """Run a plugin's benchmarks, one after the other.

    Args:
        slug: The plugin.
        names: Names of the benchmarks; all if none are given.
        seed: Seed of their inputs.
        rounds: How often each side is timed at each size.
        registry: Where to look the plugin up; the process's own if not given.

    Raises:
        UnknownName: If the plugin has no benchmark of that name.
        PluginError: If the plugin can't be loaded.
    """
    registry = registry or registries.default()
    for benchmark in select(registry.plugin(slug).benchmarks, names, f"benchmark of {slug}"):
        entries = load_object(benchmark.run, slug)(Trial(slug, registry, "small", seed))
        timings = tuple(race(entry, rounds=rounds) for entry in entries)
        yield Result(slug=slug, benchmark=benchmark, timings=timings)


def finite(value: float) -> float | None:
    """The value, or None for NaN and infinities, which JSON has no words for."""
    return value if math.isfinite(value) else None
