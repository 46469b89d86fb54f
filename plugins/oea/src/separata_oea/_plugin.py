"""What the plugin declares: its paper, offers, command, claims, benchmarks and input, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "Opportunistic Expert Activation: Batch-Aware Expert Routing for Faster Decode Without Retraining",
        venue="ICML 2026",
        arxiv="2511.02237",
        url="https://arxiv.org/abs/2511.02237",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    tags = {"mixture of experts", "routing", "decoding", "llm serving"}
    yield Offer(
        "kernel",
        "route",
        "separata_oea.routing:route",
        reference="separata_oea.reference:route_reference",
        example="separata_oea.examples:route",
        summary="Experts of a batch's tokens, none loaded beyond each token's few best.",
        tags=tags,
    )
    yield Offer(
        "scheduler",
        "batch",
        "separata_oea.scheduler:BatchScheduler",
        example="separata_oea.examples:batch",
        summary="Routes a layer step by step, and picks k0 for a number of experts or a time.",
        tags=tags,
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command("separata_oea.cli:app", summary="Decode a mixture of experts with fewer experts loaded.")


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "fewer-experts",
        says="At 16 rows a step and k0 = k/2 it loads at most 0.75 of the experts, on each of three seeds.",
        paper="Qwen3-30B-A3B, B = 16: about 50 of 128 experts a layer plainly, and -39 % latency at k0 = 3 of 8.",
        proof="separata_oea.claims:fewer_experts",
    )
    yield Claim(
        "quality-kept",
        says="Cross-entropy rises at most 0.4 as much as with plain top-k0, on each of three seeds.",
        paper="Accuracy statistically unchanged on benchmarks (abstract); no figure for cross-entropy.",
        proof="separata_oea.claims:quality_kept",
    )
    yield Claim(
        "batch-helps",
        says="The rise of cross-entropy does not grow from 4 to 16 to 32 rows a step.",
        paper="No figure: more rows load more experts that others can join.",
        proof="separata_oea.claims:batch_helps",
    )
    yield Claim(
        "decode-time",
        says="With experts that memory bounds, a decode step takes at most 0.85 of the plain one's time.",
        paper="MoE layer latency -39 % (k0 = 3) and -23 % (k0 = 5) at B = 16 on an H100, Qwen3-30B-A3B.",
        proof="separata_oea.speed_claims:decode_time",
        refuted="Not reliably on a CPU: six runs gave 0.79 to 0.90. A product with two or four rows costs over twice "
        "one with a single row there, so that fewer experts with more rows each gain less than memory alone would.",
    )
    yield Claim(
        "time-follows-experts",
        says="A layer's time is a line in its distinct experts with R² of at least 0.95.",
        refuted="Not on a CPU: its products with two rows cost more than those with one, and the line bends.",
        paper="t = b T + a B k, with b T dominating when memory bounds; no R² given.",
        proof="separata_oea.speed_claims:time_follows_experts",
    )
    yield Claim(
        "routing-cheap",
        says="The routing takes at most 0.05 of the time of the layer that it routes.",
        paper="No figure.",
        proof="separata_oea.speed_claims:routing_cheap",
    )
    yield Claim(
        "prompt-untouched",
        says="Logits of a prompt are those of the unpatched model, bit for bit.",
        paper="No figure: only decode steps are routed.",
        proof="separata_oea.claims:prompt_untouched",
    )
    yield Claim(
        "load-predicted",
        says="Experts hit while decoding are predicted from one forward over other text within 5 %.",
        paper="No figure.",
        proof="separata_oea.claims:load_predicted",
    )
    yield Claim(
        "moe-latency",
        says="Expert layers of Qwen3-30B-A3B take at most 0.7 of their time at B = 16 and k0 = 3.",
        paper="175.7 to 106.8 µs a layer on an H100, -39 %.",
        proof="separata_oea.full_scale:moe_latency",
        scales=("full",),
    )
    yield Claim(
        "task-accuracy",
        says="Qwen3-30B-A3B loses at most one standard error on GSM8K at k0 = 5.",
        paper="Accuracy statistically unchanged (abstract).",
        proof="separata_oea.full_scale:task_accuracy",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "routing",
        says="Routing sixteen rows over growing numbers of experts.",
        peer="the paper's two phases in Python",
        run="separata_oea.benchmarks:routing",
    )
    yield Benchmark(
        "decode",
        says="Decode steps of growing batches with k0 = k/2.",
        peer="the plain model",
        run="separata_oea.benchmarks:decode",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield what the claims at full scale need; small scale trains on the kit's text."""
    yield Input(
        "qwen3-30b-a3b",
        hub="Qwen/Qwen3-30B-A3B",
        licence="Apache-2.0",
        about="The paper's model: 48 layers, 8 of 128 experts (61 GB).",
    )
