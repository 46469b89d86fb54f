"""Small inputs on which the conformance kit tries what EB+ offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from separata.estimates import Estimate
from separata.testing import EstimatorExample, KernelExample, SchedulerExample

from .benchmarks import CONSTANTS
from .config import EBPlusConfig
from .hazard import HazardEstimator
from .observation import Decision, Finished, Observation, Waiting
from .schedulers import EBPlus, ExclusiveBatching, MixedBatching
from .timing import TimingModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CONFIG = EBPlusConfig(slots=8, refresh_completions=16, window=64)


class _Recorder:
    """Runs a scheduler in the simulator and keeps copies of what it was shown."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.config = inner, inner.config
        self.seen: list[Observation] = []

    def step(self, seen: Observation) -> Decision:
        self.seen.append(
            Observation(
                seen.time,
                seen.free,
                tuple(seen.waiting)[:16],
                tuple(seen.running),
                seen.pending,
                seen.used,
                tuple(seen.finished),
            )
        )
        made: Decision = self.inner.step(seen)
        return made


def _observed(make: Callable[[], Any]) -> Callable[[torch.Generator], Sequence[Observation]]:
    def observations(generator: torch.Generator) -> Sequence[Observation]:
        import torch

        from .simulator import Simulator
        from .traces import Trace

        lengths = torch.randint(1, 12, (2, 80), generator=generator).numpy()
        recorder = _Recorder(make())
        Simulator(TimingModel.from_constants(**CONSTANTS), Trace.saturated(*lengths), recorder).run()  # type: ignore[arg-type]
        return recorder.seen

    return observations


def _scheduler(make: Callable[[], Any]) -> SchedulerExample:
    bad = [
        Observation(-1.0, 8, (Waiting(0, 5, 0.0),)),
        Observation(1e9, 8, (), finished=(Finished(10**6, 3),)),
        Observation(1e9, -1),
        Observation(float("nan"), 1),
    ]
    return SchedulerExample(make=make, observations=_observed(make), bad=bad)


def serve_mb() -> SchedulerExample:
    """Mixed batching on eight slots."""
    return _scheduler(lambda: MixedBatching(CONFIG))


def serve_eb() -> SchedulerExample:
    """Exclusive batching on eight slots."""
    return _scheduler(lambda: ExclusiveBatching(2, CONFIG))


def serve_ebplus() -> SchedulerExample:
    """The adaptive controller on eight slots."""
    return _scheduler(lambda: EBPlus(TimingModel.from_constants(**CONSTANTS), CONFIG))


def hazard() -> EstimatorExample:
    """Geometric lengths, a part of them cut off; without the bound on the slope, which would bend the intervals."""
    import torch

    def data(generator: torch.Generator, rate: float = 0.02) -> tuple[Tensor, Tensor]:
        lengths = torch.empty(600, dtype=torch.float64).geometric_(rate, generator=generator)
        limit = torch.randint(20, 200, (600,), generator=generator).double()
        return torch.minimum(lengths, limit), lengths > limit

    def inference(generator: torch.Generator) -> tuple[Estimate, float]:
        return HazardEstimator(allow_decreasing=True).fit(*data(generator)).rate(), 0.02

    return EstimatorExample(
        make=HazardEstimator,
        data=data,
        bad=(([],), ([0.0],), ([2.5],), ([3.0, float("nan")],), ([3.0], [True, False])),
        inference=inference,
    )


def timing() -> EstimatorExample:
    """Steps of known lines with 1 % of noise."""
    import torch

    def data(generator: torch.Generator) -> tuple[list[dict[str, Any]]]:
        rows = []
        known = TimingModel.from_constants(**CONSTANTS)
        for phase, share in (("prefill", 0.0), ("decode", 1.0), ("mixed", 0.2), ("mixed", 0.6)):
            for tokens in (100, 400, 1600):
                decode = round(share * tokens)
                noise = 1 + 0.01 * float(torch.randn(1, generator=generator))
                seconds = noise * known.seconds(tokens - decode, decode)
                rows.append({"phase": phase, "tokens": tokens, "decode_share": share, "seconds": seconds})
        return (rows,)

    one = [{"phase": "prefill", "tokens": 4, "seconds": 1.0}]
    return EstimatorExample(make=TimingModel, data=data, bad=(([],), (one,), ([{"phase": "x"}],)))


def _kernel(*ranges: tuple[float, float], **options: Any) -> KernelExample:
    import torch

    def inputs(generator: torch.Generator, dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(
            (low + (high - low) * torch.rand(6, generator=generator, dtype=torch.float64)).to(dtype)
            for low, high in ranges
        )

    def empty(dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(torch.zeros(0, dtype=dtype) for _ in ranges)

    return KernelExample(inputs=inputs, empty=empty, **options)


RATE, FIXED, SLOPE = (1e-3, 1e-2), (0.01, 0.03), (1e-5, 3e-5)


def theta0() -> KernelExample:
    """Rates and fixed times of a server."""
    return _kernel(RATE, FIXED, FIXED)


def delta_theta() -> KernelExample:
    """Small slopes; the reference is a finite difference of a numerical optimum."""
    close = {"float64": (1e-5, 1e-9), "float32": (1e-4, 1e-7)}
    return _kernel(RATE, (1e-9, 1e-8), FIXED, FIXED, SLOPE, (32.0, 256.0), tolerances=close)


def crossover() -> KernelExample:
    """Thresholds, occupancies, lengths and step times of a server."""
    lengths = (64.0, 1024.0)
    return _kernel((0.05, 0.3), (8.0, 256.0), lengths, lengths, *(FIXED, SLOPE) * 3)


def safe_batch() -> KernelExample:
    """Capacities of some thousand to a hundred thousand tokens."""
    return _kernel((1e4, 1e5), (100.0, 900.0), (50.0, 400.0), (1e-3, 0.1))
