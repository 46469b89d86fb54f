"""What MoDEX declares: its paper, offers, command, claims and benchmarks, as names and strings."""

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
    yield Offer(
        "trainer",
        "tune",
        "separata_modex.tuning:MoDEXTrainer",
        example="separata_modex.examples:trainer",
        summary="Fine-tunes a network with the three heads, on one process or many.",
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
        "turned",
        says="Its AUROC on test digits turned by a right angle is at least each peer's.",
        paper="CIFAR-10-C at severity 5: AUPR 80.63 against F-EDL's 78.52.",
        proof="separata_modex.claims:turned",
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
    yield Claim(
        "forward-cost",
        says="A forward pass over 1000 classes takes at most 1.1 of the multiplications that a softmax layer does.",
        paper="Two more heads, O(K); no figure.",
        proof="separata_modex.claims:forward_cost",
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "moments",
        says="Moments of sixteen laws over 10 to 1000 classes.",
        peer="the K x K tensor of all advocates' parameters",
        run="separata_modex.benchmarks:moments",
    )
    yield Benchmark(
        "forward",
        says="A forward pass with moments of 64 rows through a perceptron, over 10 to 10,000 classes.",
        peer="the same perceptron with a softmax layer",
        run="separata_modex.benchmarks:forwards",
    )
