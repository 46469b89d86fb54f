"""EB+ in vLLM's v1 engine, through ``--scheduler-cls separata_ebplus.vllm:EBScheduler``. Experimental.

Not every version of vLLM keeps the attributes of its scheduler that this reads; it is written for those with
``waiting``, ``running`` and ``max_num_scheduled_tokens`` and was run under none. Step times are read from the file
that SEPARATA_EBPLUS_TIMING names, settings from SEPARATA_EBPLUS_SLOTS and so on.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from separata.config import resolve
from separata.errors import PackageMissing

from .config import EBPlusConfig
from .errors import InvalidSetting
from .observation import Decision, Finished, Observation, Waiting
from .schedulers import EBPlus, MixedBatching
from .timing import TimingModel


class EngineView:
    """Translates between vLLM's requests, named by text, and the policy's observations and decisions.

    Args:
        policy: Decides.
        slots: Most requests that run at once.
    """

    def __init__(self, policy: EBPlus | MixedBatching, slots: int) -> None:
        self.policy, self.slots = policy, slots
        self._ids: dict[str, int] = {}
        self._arrived: dict[str, float] = {}
        self._live: dict[str, Any] = {}
        self._count = 0

    def decide(self, waiting: Any, running: Any, now: float) -> Decision:
        """Observe the queue and the running requests, and decide the next iteration.

        Args:
            waiting: Requests of vLLM, oldest first.
            running: Requests of vLLM that hold a slot.
            now: Seconds of a monotonic clock.
        """
        current = {request.request_id: request for request in running}
        queued = {request.request_id: request for request in waiting}
        for name in queued:
            # vLLM's own arrival times are of the wall clock, which may go backwards.
            self._arrived.setdefault(name, now)
        gone = {name: request for name, request in self._live.items() if name not in current}
        for name in gone.keys() & queued.keys():
            self.policy.preempted(self._ids[name])
        finished = [self._finished(name, one) for name, one in gone.items() if name not in queued]
        pending = sum(max(r.num_prompt_tokens - r.num_computed_tokens, 0) for r in running)
        decoding = [(self._id(r.request_id), r.num_output_tokens) for r in running if prefilled(r)]
        queue = [Waiting(self._id(name), r.num_tokens, self._arrived[name]) for name, r in queued.items()]
        used = sum(max(r.num_computed_tokens, r.num_prompt_tokens) for r in running)
        free = max(self.slots - len(current), 0)
        made = self.policy.step(Observation(now, free, queue, decoding, pending, used, finished))
        admitted = set(made.admit)
        self._live = current | {name: r for name, r in queued.items() if self._ids[name] in admitted}
        for names in (self._ids, self._arrived):
            for name in names.keys() - current.keys() - queued.keys():
                del names[name]
        return made

    def _finished(self, name: str, request: Any) -> Finished:
        capped = getattr(request.status, "name", "") == "FINISHED_LENGTH_CAPPED"
        return Finished(self._ids[name], max(request.num_output_tokens, 1), capped)

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = self._count
            self._count += 1
        return self._ids[name]


def prefilled(request: Any) -> bool:
    """Whether a request of vLLM has its whole prompt in the cache and decodes."""
    return bool(request.num_computed_tokens >= request.num_prompt_tokens)


def __getattr__(name: str) -> Any:
    # vLLM is imported only where its engine asks for the class.
    if name == "EBScheduler":
        return _scheduler_class()
    raise AttributeError(f"module {__name__} has no attribute {name}")


def _scheduler_class() -> type[Any]:
    try:
        from vllm.v1.core.sched.scheduler import Scheduler  # type: ignore[import-not-found]
    except ImportError as error:
        raise PackageMissing.extra("vllm", "vllm") from error

    class EBScheduler(Scheduler):  # type: ignore[misc]
        """vLLM's own scheduler, shown only the requests that EB+ lets run in this iteration."""

        running: list[Any]
        max_num_running_reqs: int

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._view = EngineView(policy_from_environment(), self.max_num_running_reqs)
            self._stalled = False

        def schedule(self) -> Any:
            """Schedule one iteration as decided."""
            made = self._view.decide(list(self.waiting), list(self.running), time.monotonic())
            slots, running = self.max_num_running_reqs, self.running
            held: list[Any] = []
            # After a prefill that found no block of the cache, only decodes can make room.
            if made.kind == "prefill" and not self._stalled:
                held = [request for request in running if prefilled(request)]
                self.running = [request for request in running if not prefilled(request)]
            # Without room for another request the queue stays as it is.
            self.max_num_running_reqs = len(self.running) + (0 if self._stalled else len(made.admit))
            try:
                output = super().schedule()
            finally:
                self.max_num_running_reqs = slots
                self.running = held + self.running
            self._stalled = bool(held) and output.total_num_scheduled_tokens == 0
            return output

    return EBScheduler


def policy_from_environment() -> EBPlus:
    """EB+ with the step times and settings that the environment names.

    Raises:
        InvalidSetting: If no step times are named.
    """
    path = os.environ.get("SEPARATA_EBPLUS_TIMING", "")
    if not path:
        raise InvalidSetting(
            "SEPARATA_EBPLUS_TIMING is not set", "let it name a file of `separata ebplus profile … --out`"
        )
    settings = resolve(EBPlusConfig, env="SEPARATA_EBPLUS_").value
    return EBPlus(TimingModel.load(path), settings)


def serve(model: Path, timing: TimingModel, *, adaptive: bool, requests: int = 4096) -> float:
    """Tokens a second of vLLM's offline engine on drawn lengths; with its own scheduler unless adaptive."""
    try:
        from vllm import LLM, SamplingParams  # type: ignore[import-not-found]
    except ImportError as error:
        raise PackageMissing.extra("vllm", "vllm") from error
    import tempfile

    import numpy as np

    from .traces import draw_lengths

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timing.json"
        timing.save(file)
        os.environ["SEPARATA_EBPLUS_TIMING"] = str(file)
        os.environ["SEPARATA_EBPLUS_SLOTS"] = "2048"
        chosen = {"scheduler_cls": "separata_ebplus.vllm:EBScheduler"} if adaptive else {}
        engine = LLM(model=str(model), max_num_seqs=2048, **chosen)
        generator = np.random.default_rng(0)
        lengths = draw_lengths("geometric", 512, requests, generator).tolist()
        limits = draw_lengths("geometric", 512, requests, generator).tolist()
        prompts = [{"prompt_token_ids": generator.integers(100, 1000, n).tolist()} for n in lengths]
        sampling = [SamplingParams(max_tokens=n, ignore_eos=True) for n in limits]
        start = time.perf_counter()
        engine.generate(prompts, sampling)
        return float((sum(lengths) + sum(limits)) / (time.perf_counter() - start))
