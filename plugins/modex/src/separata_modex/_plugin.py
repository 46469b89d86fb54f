"""What MoDEX declares: its paper, offers, command, claims and benchmark, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "Courtroom Analogy: New Perspective on Uncertainty-Aware Classification",
        venue="ICML 2026",
        arxiv="2605.25616",
        url="https://arxiv.org/abs/2605.25616",
        code="https://github.com/TaeseongYoon/MoDEX",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    tags = {"uncertainty", "evidential deep learning", "calibration", "out of distribution"}
    yield Offer(
        "estimator",
        "modex",
        "separata_modex.classifier:MoDEXClassifier",
        example="separata_modex.examples:classifier",
        summary="A classifier that says how sure it is, and whether evidence is lacking.",
        tags=tags,
    )
    yield Offer(
        "kernel",
        "efd-moments",
        "separata_modex.moments:efd_moments",
        reference="separata_modex.references:efd_moments_reference",
        example="separata_modex.examples:efd_moments",
        summary="Moments of an extended flexible Dirichlet, split in two, in O(K).",
        tags=tags,
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command("separata_modex.cli:app", summary="Classify tables, and say how sure each answer is.")


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    yield Claim(
        "strangers",
        says="Its AUROC on unseen digits is at least EDL's + 0.02 and softmax's - 0.01.",
        paper="CIFAR-10 with VGG16: AUPR 91.58 on SVHN; ahead of EDL and F-EDL.",
        proof="separata_modex.claims:strangers",
    )
    yield Claim(
        "long-tail",
        says="With classes thinned to a twentieth its accuracy is at least softmax's + 0.10.",
        paper="CIFAR-10-LT (0.01): accuracy 71.53 against F-EDL's 69.40.",
        proof="separata_modex.claims:long_tail",
    )
    yield Claim(
        "exact-split",
        says="Uncertainty between and within advocates equals the mixture's own on every row.",
        paper="Closed forms; no figure.",
        proof="separata_modex.claims:exact_split",
    )
    yield Claim(
        "one-pass",
        says="One pass with its moments is at least 15 times as fast as twenty passes with dropout.",
        paper="One forward pass; no figure.",
        proof="separata_modex.claims:one_pass",
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmark."""
    yield Benchmark(
        "moments",
        says="Moments of sixteen laws over 10 to 1000 classes.",
        peer="the K x K tensor of all advocates' parameters",
        run="separata_modex.benchmarks:moments",
    )
