"""What TPG declares: its paper, offers, command, claims, benchmarks and inputs, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl

QUEUE = (
    "This queue forgets within minutes: in 60-minute blocks the difference in means is off by a tenth of the "
    "effect, so that k = 3 pays in variance for a bias that is hardly there; the paper's rates are not known to us."
)


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "Estimation of Treatment Effects Under Nonstationarity via the Truncated Policy Gradient Estimator",
        venue="ICML 2026",
        arxiv="2506.05308",
        url="https://arxiv.org/abs/2506.05308",
        code="https://github.com/wenqian-xing/TPG-Estimator",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    yield Offer(
        "estimator",
        "tpg",
        "separata_tpg.estimator:TPGEstimator",
        example="separata_tpg.examples:estimator",
        summary="Effect of a treatment on a system with memory, from one logged experiment.",
        tags={"experiments", "causal inference", "switchback", "interference", "time series"},
    )
    yield Offer(
        "kernel",
        "contributions",
        "separata_tpg.windows:contributions",
        reference="separata_tpg.windows:contributions_reference",
        example="separata_tpg.examples:contributions",
        summary="Weighted sums of the outcomes that follow each decision.",
        tags={"experiments", "off-policy evaluation"},
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command(
        "separata_tpg.cli:app", summary="Estimate the effect of a treatment on a system with memory."
    )


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    claims = {
        "exact-mean": (
            "Simulated means for k = 0, 1, 3, 5 lie within four standard errors of the exact ones.",
            "An exact expectation; no figure.",
        ),
        "truncation-bias": (
            "With k = 5 the bias on two drifting states is at most 0.03 of the effect.",
            "The bias falls geometrically in k.",
        ),
        "difference-in-means-bias": (
            "The difference in means is off by at least 0.45 of the effect there.",
            "Carry-over biases the difference in means; no figure known to us.",
        ),
        "truncation-variance": (
            "The full policy gradient has at least 20 times the variance of k = 5 there.",
            "Truncation trades bias for variance; no figure known to us.",
        ),
        "coverage": (
            "With baseline, its 95% intervals at 1000 steps cover in 92% to 97% of the runs.",
            "Normal intervals with Newey-West errors; no figure known to us.",
        ),
        "placebo-coverage": (
            "With fake arms on a real click log the 95% intervals cover 0 in 93% to 97% of the draws.",
            "No figure; a check on real outcomes.",
        ),
        "queue-against-difference-in-means": (
            "On the emergency-room queue its mean squared error is at most that of the difference in means.",
            "A queue of that kind is among its examples; figures not known to us.",
        ),
        "queue-against-stationary-dq": (
            "On the emergency-room queue its mean squared error is at most that of stationary DQ.",
            "A queue of that kind is among its examples; figures not known to us.",
        ),
        "speed": (
            "At a million steps and k = 100 its sums take at most a fiftieth of the time of a sum for each step.",
            "The authors' notebooks take O(T k); no figure.",
        ),
    }
    for name, (says, paper) in claims.items():
        yield Claim(
            name,
            says=says,
            paper=paper,
            proof=f"separata_tpg.claims:{name.replace('-', '_')}",
            refuted=QUEUE if name.startswith("queue") else "",
        )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "steps",
        says="Window sums over growing numbers of steps, k = 100.",
        peer="numpy's sliding windows, summed",
        run="separata_tpg.benchmarks:steps",
    )
    yield Benchmark(
        "lags",
        says="Window sums over growing k, 200,000 steps.",
        peer="numpy's sliding windows, summed",
        run="separata_tpg.benchmarks:lags",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield the inputs."""
    yield Input(
        "shop-clicks",
        wheel="obp==0.4.1",
        path="obp/dataset/obd/random/all/all.csv",
        sha256="87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208",
        licence="CC BY 4.0",
        about="10,000 impressions of a fashion shop in November 2019 with clicks (Open Bandit Dataset, Saito et al.).",
    )
