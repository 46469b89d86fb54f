"""What ECO declares: its paper, offers, command, claims and benchmarks, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "ECO: Quantized Training without Full-Precision Master Weights",
        venue="ICML 2026",
        arxiv="2601.22101",
        url="https://arxiv.org/abs/2601.22101",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    yield Offer(
        "scheduler",
        "adamw",
        "separata_eco.optimizers:ECOAdamW",
        example="separata_eco.examples:adamw",
        summary="AdamW on quantised weights; the momentum carries rounding errors.",
        tags={"optimizer", "quantization", "fp8", "low memory"},
    )
    yield Offer(
        "scheduler",
        "sgd",
        "separata_eco.optimizers:ECOSGD",
        example="separata_eco.examples:sgd",
        summary="SGD on quantised weights; the momentum carries rounding errors.",
        tags={"optimizer", "quantization", "fp8", "low memory"},
    )
    yield Offer(
        "estimator",
        "error-drift",
        "separata_eco.drift:ErrorDrift",
        example="separata_eco.examples:error_drift",
        summary="How alike the rounding errors of successive steps are, by weight.",
        tags={"quantization", "diagnostics"},
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command("separata_eco.cli:app", summary="Train on quantised weights without master weights.")


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "exact-is-master",
        says="With both errors compensated exactly, a language model trains as with master weights to 1e-12.",
        paper="The derivation: injecting both errors equals the run with master weights.",
        proof="separata_eco.claims:exact_is_master",
    )
    yield Claim(
        "naive-grows",
        says="Losing errors costs at least 5 times the loss at a tenth of the learning rate, on a noisy quadratic.",
        paper="Removing master weights naively can be off by 1/lr (theory).",
        proof="separata_eco.claims:naive_grows",
        refuted="From zero, the loss at 0.01 is only 2.9 times that at 0.1: the start's own loss limits it.",
    )
    yield Claim(
        "near-master",
        says="On a noisy quadratic ECO has at most 1.3 times the loss of master weights at four learning rates.",
        paper="A neighbourhood of constant radius around the optimum (theory).",
        proof="separata_eco.claims:near_master",
    )
    yield Claim(
        "beats-rounding-alone",
        says="There it has at most half the loss of stochastic rounding alone at each of the four.",
        paper="ECO with stochastic rounding is closest to the baseline.",
        proof="separata_eco.claims:beats_rounding_alone",
    )
    yield Claim(
        "gap-share",
        says="A language model on FP8 loses to master weights at most a quarter of what rounding alone loses.",
        paper="Near-lossless with FP8 on models of 30 to 800 million parameters.",
        proof="separata_eco.claims:gap_share",
        refuted="At this size stochastic rounding alone loses nothing: there is no gap to close.",
    )
    yield Claim(
        "gap-nats",
        says="That language model is at most 0.02 nats a token behind master weights.",
        paper="Near-lossless with FP8 on models of 30 to 800 million parameters.",
        proof="separata_eco.claims:gap_nats",
    )
    yield Claim(
        "beats-int8",
        says="Its held-out loss is at most that of torchao's int8 weights with stochastic rounding.",
        paper="Better than rounding alone; torchao is not in the paper.",
        proof="separata_eco.claims:beats_int8",
        scales=("full",),
    )
    yield Claim(
        "memory",
        says="FP8 weights with a momentum in bfloat16 hold at most 0.62 of master weights' bytes.",
        paper="4 bytes a parameter saved, up to a quarter of static memory.",
        proof="separata_eco.claims:memory",
    )
    yield Claim(
        "step-cost",
        says="A step on ten million parameters takes at most 1.35 times that of torch's AdamW.",
        paper="One more elementwise pass; no figure.",
        proof="separata_eco.claims:step_cost",
        refuted="Uncompiled on a CPU, rounding and its draws take more passes than AdamW itself.",
    )
    yield Claim(
        "linear-time",
        says="A step's time grows linearly with the parameters: the exponent is within 0.15 of 1.",
        paper="Elementwise; no figure.",
        proof="separata_eco.claims:linear_time",
        refuted="On a busy machine it was 1.20, 1.03 and 0.98 in three runs; that of torch's AdamW was 1.3.",
    )
    yield Claim(
        "pretrain-gpu",
        says="A Llama of 110 million parameters on FP8 is at most 0.01 nats behind master weights.",
        paper="Near-lossless with FP8 on models of 30 to 800 million parameters.",
        proof="separata_eco.full_scale:pretrain",
        scales=("full",),
    )
    yield Claim(
        "memory-gpu",
        says="Training it takes at least 15 % less of the GPU's memory at the peak.",
        paper="Up to a quarter of static memory.",
        proof="separata_eco.full_scale:peak_memory",
        scales=("full",),
    )
    yield Claim(
        "finetune-int4",
        says="SmolLM2-135M, fine-tuned on INT4 weights, is at most 0.02 nats behind master weights.",
        paper="Fine-tuning DeepSeek-MoE-16B on INT4 weights; near-lossless.",
        proof="separata_eco.full_scale:finetune",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "step",
        says="A step of AdamW on FP8 weights with stochastic rounding.",
        peer="torch's AdamW (foreach) on float32 weights",
        run="separata_eco.benchmarks:against_adamw",
    )
    yield Benchmark(
        "master",
        says="A step of AdamW on FP8 weights with stochastic rounding.",
        peer="the same with master weights",
        run="separata_eco.benchmarks:against_master",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield what claims at full scale need; small scale uses the kit's inputs."""
    yield Input(
        "pretraining-text",
        file="~/pretraining.jsonl",
        licence="yours",
        about="A file of yours: a .txt or .jsonl of a few hundred megabytes of prose.",
    )
