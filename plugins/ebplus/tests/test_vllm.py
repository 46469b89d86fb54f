"""The adapter for vLLM on a small stand-in for its scheduler: same attributes, same order of work."""

from __future__ import annotations

import sys
from collections import deque
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pytest

from separata.errors import PackageMissing
from separata_ebplus import EBPlusConfig, ExclusiveBatching, TimingModel
from separata_ebplus.errors import InvalidSetting
from separata_ebplus.vllm import EngineView, policy_from_environment

Status = Enum("Status", ["RUNNING", "FINISHED_STOPPED", "FINISHED_LENGTH_CAPPED"])


@attrs.define(eq=False)
class Request:
    request_id: str
    num_prompt_tokens: int
    outputs: int
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    status: Status = Status.RUNNING

    @property
    def num_tokens(self) -> int:
        return self.num_prompt_tokens + self.num_output_tokens


class Engine:
    """Running requests first, then the queue, within budget, slots and blocks, as vLLM's v1 scheduler."""

    def __init__(self, blocks: int = 10**9) -> None:
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.max_num_running_reqs, self.max_num_scheduled_tokens = 4, 32
        self.blocks = blocks

    def schedule(self) -> Any:
        budget, chosen = self.max_num_scheduled_tokens, {}
        for request in self.running:
            tokens = min(max(request.num_tokens - request.num_computed_tokens, 0), budget)
            chosen[request.request_id] = tokens
            budget -= tokens
        while self.waiting and budget and len(self.running) < self.max_num_running_reqs:
            if self.waiting[0].num_tokens > self.blocks:
                break
            request = self.waiting.popleft()
            self.running.append(request)
            chosen[request.request_id] = min(request.num_tokens, budget)
            budget -= chosen[request.request_id]
        assert len(self.running) <= self.max_num_running_reqs
        return SimpleNamespace(num_scheduled_tokens=chosen, total_num_scheduled_tokens=sum(chosen.values()))

    def update(self, output: Any) -> None:
        for request in list(self.running):
            request.num_computed_tokens += output.num_scheduled_tokens.get(request.request_id, 0)
            if request.num_computed_tokens == request.num_tokens:
                request.num_output_tokens += 1
            if request.num_output_tokens >= request.outputs:
                request.status = Status.FINISHED_STOPPED
                self.running.remove(request)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in ("vllm", "vllm.v1", "vllm.v1.core", "vllm.v1.core.sched", "vllm.v1.core.sched.scheduler"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm.v1.core.sched.scheduler"].Scheduler = Engine  # type: ignore[attr-defined]
    constants = {"alpha_prefill": 0.03, "beta_prefill": 3e-5, "alpha_decode": 0.012, "beta_decode": 2e-5}
    TimingModel.from_constants(**constants).save(tmp_path / "timing.json")
    monkeypatch.setenv("SEPARATA_EBPLUS_TIMING", str(tmp_path / "timing.json"))
    import separata_ebplus.vllm as adapter

    return adapter.EBScheduler


def test_every_request_is_served_in_both_modes(scheduler: Any) -> None:
    for policy in (None, ExclusiveBatching(2, EBPlusConfig(slots=4, token_budget=32))):
        engine = scheduler()
        if policy:
            engine._view.policy = policy
        requests = [Request(str(i), 3 + 7 * i % 40, 1 + i % 5) for i in range(30)]
        engine.waiting.extend(requests)
        for _ in range(500):
            engine.update(engine.schedule())
        assert [request.num_output_tokens for request in requests] == [1 + i % 5 for i in range(30)]
        assert engine.max_num_running_reqs == 4


def test_exclusive_iterations_do_not_mix(scheduler: Any) -> None:
    engine = scheduler()
    engine._view.policy = ExclusiveBatching(2, EBPlusConfig(slots=4, token_budget=32))
    engine.waiting.extend(Request(str(i), 10, 2 + i) for i in range(12))
    while engine.waiting or engine.running:
        decoding = {r.request_id for r in engine.running if r.num_computed_tokens >= r.num_prompt_tokens}
        output = engine.schedule()
        kinds = {name in decoding for name, tokens in output.num_scheduled_tokens.items() if tokens}
        assert len(kinds) == 1
        engine.update(output)


def test_a_prefill_without_blocks_gives_way_to_decodes(scheduler: Any) -> None:
    engine = scheduler()
    engine._view.policy = ExclusiveBatching(1, EBPlusConfig(slots=4, token_budget=32))
    engine.waiting.extend([Request("a", 4, 3), Request("b", 4, 3)])
    engine.update(engine.schedule())
    engine.blocks = 0
    engine.waiting.append(Request("c", 4, 3))
    for _ in range(12):
        engine.update(engine.schedule())
    assert not engine.running
    assert [request.request_id for request in engine.waiting] == ["c"]


class Recorder:
    def __init__(self) -> None:
        self.inner = ExclusiveBatching(4, EBPlusConfig(slots=4, ttft_guard=5.0))
        self.seen: list[Any] = []

    def step(self, seen: Any) -> Any:
        self.seen.append(seen)
        return self.inner.step(seen)

    def preempted(self, id: int) -> None:
        self.inner.preempted(id)


def test_the_guard_sees_how_long_a_request_has_waited() -> None:
    view = EngineView(ExclusiveBatching(4, EBPlusConfig(slots=4, ttft_guard=5.0)), 4)
    first, late = Request("a", 4, 9), Request("b", 4, 9)
    view.decide([first], [], 0.0)
    first.num_computed_tokens, first.num_output_tokens = 4, 1
    assert view.decide([late], [first], 1.0).kind == "decode"
    assert view.decide([late], [first], 7.0).kind == "prefill"


def test_what_a_limit_ended_is_capped_and_what_was_put_back_is_no_completion() -> None:
    recorder = Recorder()
    view = EngineView(recorder, 4)  # type: ignore[arg-type]
    first, second = Request("a", 4, 9), Request("b", 4, 9)
    view.decide([first, second], [], 0.0)
    first.num_output_tokens, first.status = 3, Status.FINISHED_LENGTH_CAPPED
    view.decide([second], [], 1.0)
    assert [(done.output_tokens, done.capped) for done in recorder.seen[-1].finished] == [(3, True)]


def test_without_vllm_or_step_times_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import separata_ebplus.vllm as adapter

    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(PackageMissing):
        _ = adapter.EBScheduler
    monkeypatch.delenv("SEPARATA_EBPLUS_TIMING", raising=False)
    with pytest.raises(InvalidSetting, match="SEPARATA_EBPLUS_TIMING"):
        policy_from_environment()
