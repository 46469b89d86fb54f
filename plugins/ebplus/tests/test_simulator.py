"""The engine serves every request once, in order, within its cache; schedulers decide what they should."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separata_ebplus import (
    EBPlus,
    EBPlusConfig,
    ExclusiveBatching,
    MixedBatching,
    Simulator,
    TimingModel,
    Trace,
)
from separata_ebplus.errors import CapacityTooSmall, InvalidSetting
from separata_ebplus.traces import draw_lengths

KNOWN = {"alpha_prefill": 30e-3, "beta_prefill": 3e-5, "alpha_decode": 12e-3, "beta_decode": 2e-5}
TIMING = TimingModel.from_constants(**KNOWN)


def drawn(count: int, seed: int = 0, mean: float = 30) -> Trace:
    generator = np.random.default_rng(seed)
    arrival = np.sort(generator.uniform(0, count / 20, count))
    return Trace(
        arrival,
        draw_lengths("geometric", 40, count, generator),
        draw_lengths("gamma", mean, count, generator),
    )


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(["mb", "eb", "ebplus"]), st.integers(1, 16), st.integers(8, 200)
)
def test_nothing_is_lost_and_the_cache_never_overflows(seed: int, name: str, slots: int, budget: int) -> None:
    trace = drawn(60, seed)
    capacity = int((trace.prompt_tokens + trace.output_tokens).max()) + 50
    config = EBPlusConfig(slots=slots, capacity=capacity, token_budget=budget, refresh_completions=8)
    made = {
        "mb": lambda: MixedBatching(config),
        "eb": lambda: ExclusiveBatching(min(2, slots), config),
        "ebplus": lambda: EBPlus(TIMING, config),
    }[name]()
    result = Simulator(TIMING, trace, made).run()
    assert result.request_iterations == trace.output_tokens.sum()
    assert result.peak <= capacity
    assert list(dict.fromkeys(result.admitted)) == list(range(len(trace)))
    assert (result.finish >= result.first).all()
    assert (result.first > trace.arrival).all()


def test_k_1_prefills_whenever_a_slot_is_free() -> None:
    """vLLM's v0 policy, written out again for requests that are all there, one iteration a turn."""
    trace, slots = Trace.saturated(*np.random.default_rng(0).integers(1, 30, (2, 50))), 4
    waiting, left, clock, finish = list(range(50)), {}, 0.0, {}
    while waiting or left:
        if waiting and len(left) < slots:
            chosen, waiting = waiting[: slots - len(left)], waiting[slots - len(left) :]
            clock += TIMING.seconds(int(trace.prompt_tokens[chosen].sum()), 0)
            left |= {key: int(trace.output_tokens[key]) for key in chosen}
            continue
        clock += TIMING.seconds(0, len(left))
        left = {key: tokens - 1 for key, tokens in left.items()}
        finish |= {key: clock for key, tokens in left.items() if not tokens}
        left = {key: tokens for key, tokens in left.items() if tokens}
    result = Simulator(TIMING, trace, ExclusiveBatching(1, EBPlusConfig(slots=slots))).run()
    assert result.finish.tolist() == [finish[key] for key in range(50)]


def test_a_free_prefill_needs_no_threshold() -> None:
    free = TimingModel.from_constants(**(KNOWN | {"alpha_prefill": 0.0}))
    assert EBPlus(free, EBPlusConfig(slots=64), adaptive=False).k == 1


def test_without_interference_it_stays_mixed() -> None:
    made = EBPlus(TIMING, EBPlusConfig(slots=16))
    result = Simulator(TIMING, drawn(400), made).run()
    assert [mode for _, mode in result.modes] == ["MB"]


def test_with_interference_it_turns_exclusive_and_does_not_flap() -> None:
    costly = TimingModel.from_constants(**KNOWN, mixed={0.0: 3e-5, 0.5: 2e-3, 1.0: 2e-5})
    full = Trace.saturated(*np.random.default_rng(0).integers(20, 80, (2, 600)))
    result = Simulator(costly, full, EBPlus(costly, EBPlusConfig(slots=16))).run()
    assert [mode for _, mode in result.modes][:2] == ["MB", "EB"]
    assert len(result.modes) <= 3


def test_a_guard_starts_a_phase_early() -> None:
    trace = Trace.saturated(*np.random.default_rng(0).integers(20, 200, (2, 100)))
    waits = [
        (lambda r: np.nanmax(r.first))(
            Simulator(TIMING, trace, ExclusiveBatching(8, EBPlusConfig(slots=8, ttft_guard=guard))).run()
        )
        for guard in (1e-3, 1e9)
    ]
    assert waits[0] < waits[1]


def test_state_resumes_the_same_decisions() -> None:
    from separata_ebplus.examples import serve_ebplus

    torch = pytest.importorskip("torch")
    example = serve_ebplus()
    seen = example.observations(torch.Generator().manual_seed(3))
    whole, half = example.make(), len(seen) // 2
    for one in seen[:half]:
        whole.step(one)
    again = example.make()
    again.load_state_dict(deepcopy(whole.state_dict()))
    assert [whole.step(one) for one in seen[half:]] == [again.step(one) for one in seen[half:]]


def test_a_request_that_can_not_fit_is_refused() -> None:
    with pytest.raises(CapacityTooSmall):
        Simulator(TIMING, drawn(4), MixedBatching(EBPlusConfig(capacity=5)))


def test_k_beyond_the_slots_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        ExclusiveBatching(9, EBPlusConfig(slots=8))
