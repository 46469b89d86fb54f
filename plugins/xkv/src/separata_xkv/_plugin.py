"""What xKV declares: its paper, offers, command, claims and benchmarks, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "xKV: Cross-Layer KV-Cache Compression via Aligned Singular Vector Extraction",
        venue="ICML 2026",
        arxiv="2503.18893",
        url="https://arxiv.org/abs/2503.18893",
        code="https://github.com/abdelfattah-lab/xKV",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    yield Offer(
        "kernel",
        "crosslayer-svd",
        "separata_xkv.crosslayer_svd:crosslayer_svd",
        reference="separata_xkv.crosslayer_svd:crosslayer_svd_reference",
        example="separata_xkv.examples:crosslayer_svd",
        summary="Low-rank factors that consecutive layers share, by a joint truncated SVD.",
        tags={"kv cache", "low rank", "svd", "compression"},
    )
    yield Offer(
        "kernel",
        "select-chunks",
        "separata_xkv.select_chunks:select_chunks",
        reference="separata_xkv.select_chunks:select_chunks_reference",
        example="separata_xkv.examples:select_chunks",
        summary="The chunks of a prompt that a query attends to most, from one landmark each.",
        tags={"kv cache", "sparse attention", "long context"},
    )
    yield Offer(
        "estimator",
        "cross-layer-cka",
        "separata_xkv.analysis:CrossLayerCKA",
        example="separata_xkv.examples:cross_layer_cka",
        summary="How alike the keys and values of layers are, and which to compress together.",
        tags={"kv cache", "representation similarity", "cka"},
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command(
        "separata_xkv.cli:app", summary="Compress the KV cache of a language model across its layers."
    )


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "beats-per-layer",
        says="At 8x, three layers with one basis diverge at most 0.6 times as far as each layer on its own.",
        paper="RULER 64k average, Llama-3.1-8B: 88.5 at 8.03x against 45.7 for single SVD at 8.4x (exact 91.9).",
        proof="separata_xkv.claims:beats_per_layer",
    )
    yield Claim(
        "beats-rivals",
        says="At an eighth of the bytes of a 16-bit cache it diverges least of all that are as small.",
        paper="Surpasses notable baselines (abstract); RULER 64k: 88.5 at 8.03x.",
        proof="separata_xkv.claims:beats_rivals",
    )
    yield Claim(
        "finds-needles",
        says="From a quarter of the bytes it repeats at least 0.9 of the hidden facts word for word.",
        paper="Preserves accuracy on long-context tasks up to 8x (abstract).",
        proof="separata_xkv.claims:finds_needles",
    )
    yield Claim(
        "layers-align",
        says="Keys and values of adjacent layers have a mean linear CKA of at least 0.6.",
        paper="The dominant singular vectors are well aligned across layers by CKA (abstract; no figure given).",
        proof="separata_xkv.claims:layers_align",
    )
    yield Claim(
        "tokens-differ",
        says="One token's keys and values in adjacent layers have a mean cosine within 0.05 of zero.",
        paper="Per-token cosine similarity across layers is often limited in practice (abstract; no figure given).",
        proof="separata_xkv.claims:tokens_differ",
    )
    yield Claim(
        "bytes-counted",
        says="Bytes of all tensors that a cache holds equal the formula with bases, positions and exact tail.",
        paper="2WLd / ((L + Wd)(r_k + r_v)) gives 8.03 for ranks 384 and 576, W = 4, d = 1024, L = 64k.",
        proof="separata_xkv.claims:bytes_counted",
    )
    yield Claim(
        "full-rank-exact",
        says="At full rank the logits equal those of the exact cache within 1e-4 in float32.",
        paper="No figure: a truncated SVD that truncates nothing is exact.",
        proof="separata_xkv.claims:full_rank_exact",
    )
    yield Claim(
        "decode-cost",
        says="A dense decoding step takes at most 3 times as long as with the exact cache.",
        paper="No figure for dense reconstruction; with selective reconstruction up to 4.23x faster end to end.",
        proof="separata_xkv.claims:decode_cost",
    )
    yield Claim(
        "selective-step",
        says="At a fixed budget a selective step grows with at most the square root of the prompt's length.",
        paper="Throughput with selective reconstruction 4.23x that of full attention at 122k tokens.",
        proof="separata_xkv.claims:selective_step",
    )
    yield Claim(
        "ruler-64k",
        says="On RULER at 64k tokens, the cache compressed 8 times scores at least 87 on average.",
        paper="Llama-3.1-8B: exact 91.9, xKV 88.5 at 8.03x, with selective reconstruction 89.7 at 5.35x.",
        proof="separata_xkv.claims:ruler_64k",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "factorise",
        says="Factorising the keys of four layers by their Gram matrix.",
        peer="a full singular value decomposition",
        run="separata_xkv.benchmarks:factorise",
    )
    yield Benchmark(
        "selective-step",
        says="One decoding step with selective reconstruction at a fixed budget.",
        peer="the exact cache",
        run="separata_xkv.benchmarks:selective_step",
    )
    yield Benchmark(
        "decode",
        says="One dense decoding step over a compressed prompt.",
        peer="the exact cache",
        run="separata_xkv.benchmarks:decode",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield what the claim at full scale needs; small scale uses the kit's inputs."""
    yield Input(
        "llama-3-1-8b",
        hub="meta-llama/Llama-3.1-8B-Instruct",
        licence="Llama 3.1 Community License",
        about="The model of the paper's tables (16 GB); the hub asks for its terms to be accepted.",
    )
    yield Input(
        "ruler-64k",
        file="~/ruler-64k",
        licence="Apache-2.0",
        about="A folder of yours with one JSONL file a task, as RULER's own generator writes them.",
    )
