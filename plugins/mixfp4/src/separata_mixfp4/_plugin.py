"""What MixFP4 declares: its paper, offers, command, claims and benchmarks, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "MixFP4: Enhancing NVFP4 with Adaptive FP4/INT4 Block Representations",
        venue="ICML 2026",
        arxiv="2605.31035",
        url="https://arxiv.org/abs/2605.31035",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    for name, summary in (
        ("mixfp4", "Rounds blocks of 16 to E2M1 or to -7..7, whichever is nearer."),
        ("nvfp4", "Rounds blocks of 16 to E2M1 with E4M3 scales."),
        ("nvint4", "Rounds blocks of 16 to -7..7 with E4M3 scales."),
        ("fouroversix", "Rounds blocks of 16 to E2M1 with the largest at 6 or at 4."),
    ):
        yield Offer(
            "kernel",
            name,
            f"separata_mixfp4.kernels:{name}",
            reference=f"separata_mixfp4.kernels:{name}_reference",
            example="separata_mixfp4.examples:kernel",
            summary=summary,
            tags={"quantization", "4-bit", "block scaling"},
        )
    yield Offer(
        "estimator",
        "crest-factor-report",
        "separata_mixfp4.report:CrestFactorReport",
        example="separata_mixfp4.examples:crest_factor_report",
        summary="Crest factors of a tensor's blocks, and what each 4-bit method makes of it.",
        tags={"quantization", "4-bit", "diagnostics"},
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command(
        "separata_mixfp4.cli:app", summary="Quantise models to 4-bit blocks on the better of two grids."
    )


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "never-worse",
        says="On every tensor its squared error is at most that of the better of NVFP4 and NVINT4.",
        paper="Each block takes the representation of lower error (Algorithm 1).",
        proof="separata_mixfp4.claims:never_worse",
    )
    yield Claim(
        "gains-over-nvfp4",
        says="On a model's keys and values (mean of layers) and on Gaussians it gains 0.5 dB over NVFP4.",
        paper="Enhances NVFP4 at the same 4.5 bits a value (abstract; no figure in dB).",
        proof="separata_mixfp4.claims:gains_over_nvfp4",
    )
    yield Claim(
        "perplexity",
        says="With weights and inputs in 4 bits, perplexity is at most that of NVFP4.",
        paper="WikiText-2, Llama-3.2-1B, RTN: exact 11.57, NVFP4 13.90, NVINT4 14.79, MixFP4 13.48.",
        proof="separata_mixfp4.claims:perplexity",
    )
    yield Claim(
        "crossover",
        says="The theory's two error curves cross at a crest factor of 2.2243.",
        paper="2.2243, where QSNR is 21.03 dB.",
        proof="separata_mixfp4.claims:crossover_point",
    )
    yield Claim(
        "predicts-the-choice",
        says="The share of uniform blocks and of crest factors below the crossover differ by at most 0.09.",
        paper="Blocks below the crossover prefer INT4 (theory; no figure for real tensors).",
        proof="separata_mixfp4.claims:predicts_the_choice",
    )
    yield Claim(
        "crest-selects",
        says="On at least 0.8 of Gaussian blocks the crest factor takes the grid of the smaller error.",
        paper="No figure: a block is chosen by its error (Algorithm 1); its crest factor explains the choice.",
        proof="separata_mixfp4.claims:crest_selects",
        refuted="Both errors are near in many blocks, and chance decides: 0.755, and no border does better than 0.76.",
    )
    yield Claim(
        "bits-a-number",
        says="Codes, scales and types of a model's weights take 4.5 bits a number.",
        paper="4.5 bits a value, without metadata (abstract).",
        proof="separata_mixfp4.claims:packs_in_four_and_a_half_bits",
    )
    yield Claim(
        "multiplies-exactly",
        says="Dot products in E2M2 integers equal those of dequantised numbers in float64 to 0 ulp.",
        paper="Both formats become one E2M2 (abstract).",
        proof="separata_mixfp4.claims:multiplies_exactly",
    )
    yield Claim(
        "cost",
        says="Fake quantisation takes at most 2.5 times as long as NVFP4's.",
        paper="No figure for software.",
        proof="separata_mixfp4.claims:fake_quantisation_cost",
    )
    yield Claim(
        "linear-time",
        says="Time grows linearly with the numbers: the exponent is within 0.1 of 1.",
        paper="No figure: two quantisations a block.",
        proof="separata_mixfp4.claims:grows_linearly",
        refuted="A call has a fixed cost of half a millisecond, which 2^16 numbers still show: 0.88.",
    )
    yield Claim(
        "perplexity-8b",
        says="Llama-3.1-8B on WikiText-2: W4A4 perplexity at most that of NVFP4.",
        paper="Exact 7.33, NVFP4 8.26, NVINT4 8.37, MixFP4 8.06.",
        proof="separata_mixfp4.claims:perplexity_full",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "fake-quantise",
        says="Rounding float32 numbers to the better of two grids.",
        peer="the same for NVFP4",
        run="separata_mixfp4.benchmarks:against_nvfp4",
    )
    yield Benchmark(
        "pack",
        says="Packing float32 numbers and unpacking them.",
        peer="NVFP4 of torchao",
        run="separata_mixfp4.benchmarks:against_torchao",
    )
    yield Benchmark(
        "reference",
        says="Tensors at once.",
        peer="the float64 reference, number by number",
        run="separata_mixfp4.benchmarks:against_reference",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield what the claim at full scale needs; small scale uses the kit's inputs."""
    yield Input(
        "llama-3-1-8b",
        hub="meta-llama/Llama-3.1-8B",
        licence="Llama 3.1 Community License",
        about="The model of the paper's table (16 GB); the hub asks for its terms to be accepted.",
    )
    yield Input(
        "wikitext-2",
        file="~/wikitext-2-test.txt",
        licence="CC BY-SA 3.0",
        about="A file of yours: the raw test split of WikiText-2.",
    )
