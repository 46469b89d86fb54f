"""Batch schedulers: mixed batching, exclusive batching with a threshold, and the one that picks the better."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .closed_forms import THETA_MIN, crossover, footprint, prefill_iterations, safe_batch, threshold
from .config import EBPlusConfig
from .errors import InvalidObservation, InvalidSetting
from .hazard import HazardEstimator
from .observation import Decision, Observation
from .timing import TimingModel

Mode = Literal["MB", "EB"]
MIN_SAMPLE = 16  # finished requests before statistics replace the priors


class _Batching:
    """What all three share: the requests under way, admission in order of arrival, the gate of the cache."""

    def __init__(self, config: EBPlusConfig | None = None) -> None:
        self.config = config or EBPlusConfig()
        self.slots = self.config.slots
        self._time = -math.inf
        self._admitted: dict[int, int] = {}
        self._reserve = self.config.prior_output * (1 + self.config.reserve_margin)

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on from here, as plain values."""
        return {
            "time": self._time,
            "slots": self.slots,
            "reserve": self._reserve,
            "admitted": [[key, tokens] for key, tokens in self._admitted.items()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._time, self.slots, self._reserve = state["time"], state["slots"], state["reserve"]
        self._admitted = dict(state["admitted"])

    def _check(self, seen: Observation) -> None:
        if not seen.time >= self._time:
            raise InvalidObservation(
                f"the clock says {seen.time} after {self._time}",
                "a clock only goes forward: use a monotonic one",
            )
        if seen.free < 0 or seen.pending < 0 or seen.used < 0:
            raise InvalidObservation("free, pending or used is negative", "count slots and tokens from 0")
        for done in seen.finished:
            if done.id not in self._admitted or done.output_tokens < 1:
                raise InvalidObservation(
                    f"request {done.id} finished with {done.output_tokens} tokens",
                    "only requests that were admitted finish, once each, after at least one token",
                )
        self._time = seen.time

    def _forget(self, seen: Observation) -> None:
        for done in seen.finished:
            self._admitted.pop(done.id, None)

    def _admit(self, seen: Observation) -> list[int]:
        """The oldest requests that find a slot and room in the cache, in their order."""
        free = min(seen.free, self.slots - len(self._admitted))
        if free <= 0 or not seen.waiting:
            return []
        ids: list[int] = []
        room = self.config.capacity - seen.used
        for request in islice(seen.waiting, free):
            room -= request.prompt_tokens + self._reserve
            # Alone in an idle engine the oldest goes in on its prompt's tokens: its reserve is only a guess.
            if room < 0 and (ids or self._admitted or room + self._reserve < 0):
                break
            ids.append(request.id)
            self._admitted[request.id] = request.prompt_tokens
        return ids

    def preempted(self, id: int) -> None:
        """The engine took a request's slot back and put it first in the queue."""
        self._admitted.pop(id, None)

    def _mixed(self, seen: Observation) -> Decision:
        ids = self._admit(seen)
        kind: Literal["prefill", "decode", "mixed"] = "decode"
        if ids or seen.pending:
            kind = "mixed" if len(seen.running) else "prefill"
        return Decision(kind, ids, self.config.token_budget)

    def _exclusive(self, seen: Observation, k: int) -> Decision:
        budget = self.config.token_budget
        if seen.pending:
            return Decision("prefill", [], budget)
        if seen.waiting:
            free = min(seen.free, self.slots - len(self._admitted))
            late = seen.time - seen.waiting[0].arrival > self.config.ttft_guard
            if free >= k or (free > 0 and late) or not len(seen.running):
                ids = self._admit(seen)
                if ids:
                    return Decision("prefill", ids, budget)
        return Decision("decode", [], budget)


class MixedBatching(_Batching):
    """Every iteration decodes all running requests and fills up with prompt chunks, as vLLM's v1 engine does.

    Args:
        config: Slots, budget and capacity; what concerns thresholds is not used.
    """

    def step(self, observation: Observation) -> Decision:
        """Decide the next iteration.

        Raises:
            InvalidObservation: If it contradicts earlier ones.
        """
        self._check(observation)
        self._forget(observation)
        return self._mixed(observation)


class ExclusiveBatching(_Batching):
    """Decodes until ``k`` slots are free, then prefills waiting requests into all free slots, and so on.

    Args:
        k: Free slots that start a prefill phase; 1 is the policy of vLLM's v0 engine.
        config: Slots, budget, capacity and the guard of waiting times.

    Raises:
        InvalidSetting: If ``k`` is not from 1 to the number of slots.
    """

    def __init__(self, k: int = 1, config: EBPlusConfig | None = None) -> None:
        super().__init__(config)
        if not 1 <= k <= self.slots:
            raise InvalidSetting(f"k is {k}", f"k is a whole number from 1 to {self.slots} slots")
        self.k = k

    def step(self, observation: Observation) -> Decision:
        """Decide the next iteration.

        Raises:
            InvalidObservation: If it contradicts earlier ones.
        """
        self._check(observation)
        self._forget(observation)
        return self._exclusive(observation, self.k)


class EBPlus(_Batching):
    """Learns lengths and completion rates from finished requests and runs the mode and threshold that win now.

    In exclusive phases deaths and requests at risk are counted by iterations since the phase began, which is the
    time of the hazard in the threshold's correction; requests still running at its end are censored there.

    Args:
        timing: The engine's step times in seconds.
        config: The settings.
        adaptive: Whether the mode may change; if not, always exclusive with the learned threshold.

    Attributes:
        mode: ``MB`` or ``EB``.
        theta, k: The threshold in force.
        advantage: Seconds a token by which exclusive batching is expected to win.
    """

    def __init__(
        self, timing: TimingModel, config: EBPlusConfig | None = None, *, adaptive: bool = True
    ) -> None:
        super().__init__(config)
        self.timing, self.adaptive = timing, adaptive
        self.mode: Mode = "MB" if adaptive else "EB"
        self.theta, self.k, self.advantage = 0.0, 1, 0.0
        # Prompt and output length of the last finished requests, the oldest overwritten first.
        self._lengths = np.zeros((self.config.window, 2))
        self._finished = 0
        self._deaths: list[float] = []
        self._exposure: list[float] = []
        self._age = 0
        self._died, self._exposed = 0.0, 0.0
        self._new, self._refreshed = 0, -math.inf
        self._occupancy, self._streak, self._last_running = 0.0, 0, 0
        self._decay = 0.5 ** (1 / self.config.half_life)
        self._set_threshold(1 / self.config.prior_output, 0.0)
        self._set_line(np.array([self.config.prior_prompt]), self.config.prior_output)

    def step(self, observation: Observation) -> Decision:
        """Decide the next iteration.

        Raises:
            InvalidObservation: If it contradicts earlier ones.
        """
        self._check(observation)
        self._learn(observation.finished)
        self._forget(observation)
        running = len(observation.running)
        # Slots that a phase leaves free while requests wait are its own doing: counted as free they would make each
        # decode phase look like light load, and the mode flap.
        load = min(self.slots, len(self._admitted) + len(observation.waiting))
        self._occupancy = self._decay * self._occupancy + (1 - self._decay) * load
        if self._new >= self.config.refresh_completions or (
            self._new and observation.time - self._refreshed >= self.config.refresh_seconds
        ):
            self._refresh(observation.time)
        if self.adaptive and self._finished >= MIN_SAMPLE:
            self._evaluate()
        made = self._mixed(observation) if self.mode == "MB" else self._exclusive(observation, self.k)
        # The next observation's completions happen in this iteration, among the requests that now run.
        self._last_running = running if made.kind != "prefill" else 0
        if made.kind == "prefill":
            self._age = 0
        return made

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on from here, as plain values."""
        own = {name: getattr(self, name) for name in self._PLAIN}
        lists = {name: list(getattr(self, name)) for name in ("_deaths", "_exposure")}
        return super().state_dict() | own | lists | {"_lengths": self._lengths.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        for name in self._PLAIN:
            setattr(self, name, state[name])
        self._deaths, self._exposure = list(state["_deaths"]), list(state["_exposure"])
        self._lengths = np.array(state["_lengths"])

    _PLAIN = (
        *("mode", "theta", "k", "advantage", "_age", "_died", "_exposed", "_new", "_refreshed"),
        *("_occupancy", "_streak", "_last_running", "_gap", "_fixed", "_finished"),
    )

    def _learn(self, finished: Any) -> None:
        if self._last_running:
            if self.mode == "EB":
                if self._age >= len(self._deaths):
                    self._deaths.append(0.0)
                    self._exposure.append(0.0)
                self._exposure[self._age] += self._last_running
                self._deaths[self._age] += sum(not done.capped for done in finished)
                self._age += 1
            self._exposed += self._last_running
            self._died += sum(not done.capped for done in finished)
        for done in finished:
            self._lengths[self._finished % len(self._lengths)] = self._admitted[done.id], done.output_tokens
            self._finished += 1
        self._new += len(finished)

    def _refresh(self, time: float) -> None:
        self._new, self._refreshed = 0, time
        if self._finished < MIN_SAMPLE or self._died < 1:
            return
        prompts, outputs = self._lengths[: self._finished].T
        # Deaths over exposure: unlike the mean of finished lengths it counts the long ones that still run.
        rate, slope = self._died / self._exposed, 0.0
        if sum(self._deaths) >= self.config.refresh_completions:
            hazard = HazardEstimator(allow_decreasing=self.config.allow_decreasing)
            hazard.fit_counts(self._deaths, self._exposure)
            # A slope that can't be told from none would only add its noise to the threshold.
            if abs(hazard.eta_) > 2 * hazard.eta_std_error_:
                rate, slope = hazard.p0_, hazard.eta_
            else:
                rate = sum(self._deaths) / sum(self._exposure)
        self._reserve = (1 + self.config.reserve_margin) * self._exposed / self._died
        if math.isfinite(self.config.capacity):
            most = safe_batch(self.config.capacity, *footprint(prompts, outputs), self.config.overflow)
            self.slots = min(self.config.slots, max(1, int(most)))
        self._set_threshold(rate, slope)
        self._set_line(prompts, self._exposed / self._died)
        self._fade()

    def _fade(self) -> None:
        """Keep the weight of what was counted at a window of completions."""
        died = sum(self._deaths)
        if died > self.config.window:
            share = self.config.window / died
            self._deaths = [count * share for count in self._deaths]
            self._exposure = [count * share for count in self._exposure]
        if self._died > self.config.window:
            self._exposed *= self.config.window / self._died
            self._died = float(self.config.window)

    def _set_threshold(self, rate: float, slope: float) -> None:
        times = self.timing
        if times.alpha_prefill_ == 0:
            self.theta, self.k = THETA_MIN, 1
            return
        theta, _ = threshold(
            rate, slope, times.alpha_prefill_, times.alpha_decode_, times.beta_decode_, self.slots
        )
        self.theta = min(theta, self.config.theta_max)
        self.k = max(1, math.floor(self.theta * self.slots))

    def _set_line(self, prompts: NDArray[np.float64], output: float) -> None:
        """The crossover is a gap less a fixed cost over the occupancy; both are kept until the next refresh."""
        times, prompt = self.timing, float(prompts.mean())
        beta = times.effective_beta_mixed(max(self._occupancy, 1.0), prompts, output)
        phase = times.alpha_prefill_ * prefill_iterations(self.k, prompt, self.config.token_budget)
        constants = (
            *(phase, times.beta_prefill_, times.alpha_decode_, times.beta_decode_),
            *(times.alpha_mixed_, beta),
        )
        self._gap = float(crossover(self.theta, math.inf, prompt, output, *constants))
        self._fixed = self._gap - float(crossover(self.theta, 1.0, prompt, output, *constants))

    def _evaluate(self) -> None:
        self.advantage = self._gap - self._fixed / max(self._occupancy, 1e-9)
        better: Mode = "EB" if self.advantage > self.config.delta else "MB"
        self._streak = self._streak + 1 if better != self.mode else 0
        if self._streak >= self.config.hysteresis:
            self.mode, self._streak, self._age = better, 0, 0
