"""What TUF declares: its paper, offers, command, claims and benchmarks, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Benchmark, Claim, Command, Offer, Paper, hookimpl

SQUARES = (
    "Periods that grow by gamma^-n leave less. The bound adds the sizes of the periods' errors; they are "
    "independent and add in squares, and sum gamma^(2(N-1-n)) / K_n is smallest where K_n ~ gamma^-n."
)


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "The Role of Target Update Frequencies in Q-Learning",
        venue="ICML 2026",
        arxiv="2602.03911",
        url="https://arxiv.org/abs/2602.03911",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    schedulers = {
        "target-geometric": (
            "Geometric",
            "geometric",
            "Refreshes the target ever more rarely, without a horizon.",
        ),
        "target-optimal": (
            "optimal",
            "optimal",
            "Refreshes the target in the best periods for a known budget.",
        ),
        "target-triggered": (
            "Triggered",
            "triggered",
            "Refreshes the target once its differences are small enough.",
        ),
        "target-constant": ("Constant", "constant", "Refreshes the target every so many updates."),
    }
    for name, (found, example, summary) in schedulers.items():
        yield Offer(
            "scheduler",
            name,
            f"separata_tuf.schedules:{found}",
            example=f"separata_tuf.examples:{example}",
            summary=summary,
            tags={"reinforcement learning", "q-learning", "dqn", "target network"},
        )
    yield Offer(
        "estimator",
        "periodic-q",
        "separata_tuf.periodic_q:PeriodicQ",
        example="separata_tuf.examples:periodic_q",
        summary="Q-learning on tables whose target is refreshed by a schedule.",
        tags={"reinforcement learning", "q-learning", "tabular"},
    )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command("separata_tuf.cli:app", summary="Choose when Q-learning refreshes its target.")


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    claims = {
        "beats-equal-periods": (
            "At 3e4 to 3e6 updates growing periods leave at most 0.65 of the error of the best equal ones.",
            "Growing periods lose the logarithm in the sample complexity; no figure.",
        ),
        "falls-as-root": (
            "Their error falls as the budget to the power of -0.4 to -0.6.",
            "O(1 / eps^2) samples for an error of eps.",
        ),
        "exponent-is-best": (
            "Periods that grow by gamma^(-2/3) leave at most 1.2 of the error of the best exponent tried.",
            "K_n ~ gamma^(-2n/3).",
        ),
        "on-grid-worlds": (
            "On FrozenLake and a noisy CliffWalking their error is at most 1.05 of that of equal periods.",
            "GridWorld experiments; no figure known to us.",
        ),
        "fast": (
            "A hundred thousand updates take at most a fiftieth of the time of a loop over samples.",
            "No figure.",
        ),
    }
    for name, (says, paper) in claims.items():
        yield Claim(
            name,
            says=says,
            paper=paper,
            proof=f"separata_tuf.claims:{name.replace('-', '_')}",
            refuted=SQUARES if name == "exponent-is-best" else "",
        )
    yield Claim(
        "deep",
        says="DQN on CartPole with growing periods returns at least what the median constant interval does.",
        paper="No figure known to us.",
        proof="separata_tuf.claims:deep",
        scales=("full",),
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "regression",
        says="A period's updates over samples that were drawn before.",
        peer="a loop on Python's lists",
        run="separata_tuf.benchmarks:regression",
    )
    yield Benchmark(
        "whole",
        says="A period's updates, drawing included.",
        peer="a loop that draws and learns one sample after the other",
        run="separata_tuf.benchmarks:whole",
    )
