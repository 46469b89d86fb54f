"""A serving engine in which only time is simulated: slots, cache, chunked prefill, preemption, one iteration a turn."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from .config import EBPlusConfig
from .errors import CapacityTooSmall, InvalidDecision
from .observation import Decision, Finished, Observation, Waiting
from .timing import TimingModel
from .traces import Trace


class BatchScheduler(Protocol):
    """What the engine asks before each iteration."""

    config: EBPlusConfig

    def step(self, observation: Observation) -> Decision:
        """Decide the next iteration."""

    def preempted(self, id: int) -> None:
        """Take note that a request lost its slot and waits again."""


@attrs.frozen(eq=False, kw_only=True)
class SimulationResult:
    """What happened to each request, and to the engine.

    Args:
        trace: The requests.
        first: When each request's first token came, in seconds, shape (requests,).
        finish: When each was done, shape (requests,).
        admitted: Ids in the order of their admission; a preempted one again.
        seconds: The engine's clock at the end.
        iterations: Iterations by kind of tokens in them.
        request_iterations: Tokens decoded.
        preemptions: How often the cache overflowed and a request was put back.
        peak: The most tokens in the cache.
        modes: (time, mode) at each change, if the scheduler has a mode.
    """

    trace: Trace
    first: NDArray[np.float64]
    finish: NDArray[np.float64]
    admitted: list[int]
    seconds: float
    iterations: dict[str, int]
    request_iterations: int
    preemptions: int
    peak: int
    modes: list[tuple[float, str]]

    def metrics(self, *, slo_ttft: float = math.inf, slo_tpot: float = math.inf) -> dict[str, float]:
        """Throughput and latencies; times in seconds.

        Args:
            slo_ttft: The time to the first token that counts as good.
            slo_tpot: The time per further token that counts as good.
        """
        ttft = self.first - self.trace.arrival
        tpot = (self.finish - self.first) / np.maximum(self.trace.output_tokens - 1, 1)
        good = int(((ttft <= slo_ttft) & (tpot <= slo_tpot)).sum())
        tokens = int(self.trace.output_tokens.sum() + self.trace.prompt_tokens.sum())
        quantiles = {
            f"{name}_p{level}": float(np.percentile(values, level))
            for name, values in (("ttft", ttft), ("tpot", tpot))
            for level in (50, 99)
        }
        return {
            "tokens_per_second": tokens / self.seconds,
            "output_tokens_per_second": float(self.trace.output_tokens.sum()) / self.seconds,
            "requests_per_second": len(self.trace) / self.seconds,
            **quantiles,
            "goodput": good / self.seconds,
            "preemptions": self.preemptions,
            "peak_tokens": self.peak,
        }

    def steady_rate(self, start: float = 0.1, end: float = 0.7) -> float:
        """Requests a second between two shares of the completions, without filling up and draining."""
        done = np.sort(self.finish)
        low, high = int(start * len(done)), int(end * len(done)) - 1
        return (high - low) / float(done[high] - done[low])


class Simulator:
    """Runs a trace through a scheduler; exact for the timing model it is given.

    Every output token takes one decode iteration, as in the closed forms; the first comes with the first of them.
    If the next iteration's tokens do not fit into the cache, the latest requests are preempted: they wait at the
    head of the queue and their prompt and output so far are prefilled again.

    Args:
        timing: Step times.
        trace: The requests.
        scheduler: Decides each iteration; its config gives slots and capacity.
    """

    def __init__(self, timing: TimingModel, trace: Trace, scheduler: BatchScheduler) -> None:
        self.timing, self.trace, self.scheduler = timing, trace, scheduler
        largest = int((trace.prompt_tokens + trace.output_tokens).max(initial=0))
        if largest > scheduler.config.capacity:
            raise CapacityTooSmall(
                f"a request needs {largest} tokens and the cache holds {scheduler.config.capacity:g}",
                "give a larger capacity, or leave out such requests",
            )

    def run(self) -> SimulationResult:
        """Serve all requests."""
        return _Engine(self.timing, self.trace, self.scheduler).run()


class _Running(Collection[tuple[int, int]]):
    """A view of the decoding requests: its length costs nothing, its items are made when asked for."""

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return len(self._engine.base)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        engine = self._engine
        return ((key, engine.turn - base) for key, base in engine.base.items())

    def __contains__(self, item: object) -> bool:
        return item in list(self)


class _Engine:
    def __init__(self, timing: TimingModel, trace: Trace, scheduler: BatchScheduler) -> None:
        self.timing, self.trace, self.scheduler = timing, trace, scheduler
        self.slots, self.capacity = scheduler.config.slots, scheduler.config.capacity
        self.arrival, self.prompt = trace.arrival.tolist(), trace.prompt_tokens.tolist()
        self.output = trace.output_tokens.tolist()
        self.done = [0] * len(trace)  # tokens generated before the last preemption
        self.first, self.finish = [math.nan] * len(trace), [math.nan] * len(trace)
        self.waiting: deque[Waiting] = deque()
        self.pending: deque[list[int]] = deque()
        self.base: dict[int, int] = {}  # decoding request to the turn at which it would have had no token yet
        self.ends: list[tuple[int, int]] = []
        self.fresh: list[int] = []
        self.clock, self.turn, self.used, self.next, self.peak = 0.0, 0, 0, 0, 0
        self.pending_tokens, self.decoded, self.preemptions = 0, 0, 0
        self.order: list[int] = []
        self.kinds = {"prefill": 0, "decode": 0, "mixed": 0}
        self.modes: list[tuple[float, str]] = []

    def run(self) -> SimulationResult:
        finished: list[Finished] = []
        running, step, count, left = _Running(self), self.scheduler.step, len(self.arrival), len(self.arrival)
        idle = 0
        while left:
            while self.next < count and self.arrival[self.next] <= self.clock:
                key = self.next
                self.waiting.append(Waiting(key, self.prompt[key], self.arrival[key]))
                self.next += 1
            if not (self.waiting or self.pending or self.base):
                self.clock = self.arrival[self.next]
                continue
            free = self.slots - len(self.base) - len(self.pending)
            seen = Observation(
                self.clock, free, self.waiting, running, self.pending_tokens, self.used, finished
            )
            made = step(seen)
            if made.admit:
                self._admit(made.admit, free)
            finished = self._iterate(made)
            left -= len(finished)
            self._note_mode()
            idle = idle + 1 if not (self.base or self.pending) and self.waiting and not finished else 0
            if idle > 1:
                raise InvalidDecision("nothing runs and nothing is admitted", "admit a waiting request")
        return SimulationResult(
            trace=self.trace,
            first=np.asarray(self.first),
            finish=np.asarray(self.finish),
            admitted=self.order,
            seconds=self.clock,
            iterations=self.kinds,
            request_iterations=self.decoded,
            preemptions=self.preemptions,
            peak=self.peak,
            modes=self.modes,
        )

    def _admit(self, ids: list[int], free: int) -> None:
        if len(ids) > free:
            raise InvalidDecision(f"{len(ids)} requests for {free} slots", "admit at most the free slots")
        for key in ids:
            if not self.waiting or self.waiting[0].id != key:
                raise InvalidDecision(
                    f"request {key} is not the next", "admit waiting requests in their order"
                )
            request = self.waiting.popleft()
            self.pending.append([key, request.prompt_tokens])
            self.pending_tokens += request.prompt_tokens
            self.used += request.prompt_tokens
            self.order.append(key)
        if self.used > self.capacity:
            raise InvalidDecision(
                f"{self.used} tokens for a cache of {self.capacity:g}", "admit what fits into the cache"
            )
        self.peak = max(self.peak, self.used)

    def _iterate(self, made: Decision) -> list[Finished]:
        decoding = made.kind != "prefill"
        while decoding and self.used + len(self.base) > self.capacity:
            self._preempt()
        tokens = len(self.base) if decoding else 0
        chunk = 0
        if made.kind != "decode":
            chunk = min(self.pending_tokens, max(made.max_tokens - tokens, 0))
        if not tokens and not chunk:
            return []
        self.clock += self.timing.seconds(chunk, tokens)
        self.kinds["mixed" if tokens and chunk else "decode" if tokens else "prefill"] += 1
        finished = self._decode(tokens) if tokens else []
        if chunk:
            self._prefill(chunk)
        return finished

    def _decode(self, tokens: int) -> list[Finished]:
        self.turn += 1
        self.decoded += tokens
        self.used += tokens
        if self.used > self.peak:
            self.peak = self.used
        for key in self.fresh:
            if math.isnan(self.first[key]):
                self.first[key] = self.clock
        self.fresh.clear()
        finished = []
        while self.ends and self.ends[0][0] <= self.turn:
            end, key = heapq.heappop(self.ends)
            # An entry of a preempted request is stale.
            if key in self.base and self.base[key] + self.output[key] == end:
                del self.base[key]
                self.finish[key] = self.clock
                self.used -= self.prompt[key] + self.output[key]
                finished.append(Finished(key, self.output[key]))
        return finished

    def _prefill(self, chunk: int) -> None:
        self.pending_tokens -= chunk
        while self.pending and chunk >= self.pending[0][1]:
            key, need = self.pending.popleft()
            chunk -= need
            self.base[key] = self.turn - self.done[key]
            heapq.heappush(self.ends, (self.base[key] + self.output[key], key))
            self.fresh.append(key)
        if chunk:
            self.pending[0][1] -= chunk

    def _preempt(self) -> None:
        if self.pending:
            key, need = self.pending.pop()
            self.pending_tokens -= need
        else:
            key = next(reversed(self.base))
            self.done[key] = self.turn - self.base.pop(key)
            if key in self.fresh:
                self.fresh.remove(key)
        held = self.prompt[key] + self.done[key]
        self.used -= held
        self.waiting.appendleft(Waiting(key, held, self.arrival[key]))
        self.preemptions += 1
        self.scheduler.preempted(key)

    def _note_mode(self) -> None:
        mode: Any = getattr(self.scheduler, "mode", None)
        if mode and (not self.modes or self.modes[-1][1] != mode):
            self.modes.append((self.clock, mode))
