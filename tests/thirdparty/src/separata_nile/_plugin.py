"""What nile declares: names and strings only."""

import os
from collections.abc import Iterator
from pathlib import Path

from separata import Claim, Command, Input, Offer, Paper, hookimpl


@hookimpl
def separata_paper() -> Paper:
    """The paper that this plugin implements."""
    return Paper(
        "The problem of the Nile: conditional solution to a changepoint problem", venue="Biometrika 1978"
    )


@hookimpl
def separata_offers() -> Iterator[Offer]:
    """What programs can look up."""
    yield Offer(
        "kernel",
        "soft-threshold",
        "separata_nile.kernel:soft_threshold",
        summary="Shrinks numbers towards zero and stops there.",
        reference="separata_nile.kernel:soft_threshold_reference",
        example="separata_nile.examples:kernel",
        tags={"differentiable"},
    )
    yield Offer(
        "model",
        "linear",
        "separata_nile.model:LinearModel",
        summary="A linear map, damped by the strength.",
        config="separata_nile.config:NileConfig",
        example="separata_nile.examples:model",
    )
    yield Offer(
        "trainer",
        "regression",
        "separata_nile.trainer:RegressionTrainer",
        summary="Fits a linear map to pairs by gradient descent.",
        example="separata_nile.examples:trainer",
    )
    yield Offer(
        "estimator",
        "mean",
        "separata_nile.estimator:MeanEstimator",
        summary="The mean of a sample with its standard error.",
        example="separata_nile.examples:estimator",
    )
    yield Offer(
        "scheduler",
        "average",
        "separata_nile.scheduler:AverageScheduler",
        summary="Decides the moving average of what it has seen.",
        example="separata_nile.examples:scheduler",
    )


@hookimpl
def separata_commands() -> Iterator[Command]:
    """The plugin's verbs."""
    yield Command("separata_nile.cli:app", summary="The flow of the Nile, and what was built to hold it.")


@hookimpl
def separata_claims() -> Iterator[Claim]:
    """What is known of the river, with its proof."""
    yield Claim(
        "flow-fell",
        says="After the dam of 1898 the flow is at most 0.8 of what it was.",
        paper="0.77 (Cobb 1978)",
        proof="separata_nile.claims:flow_fell",
    )


@hookimpl
def separata_inputs() -> Iterator[Input]:
    """The annual flow at Aswan, which ships with this plugin."""
    yield Input(
        "nile-flow",
        file=str(Path(__file__).with_name("nile.csv")),
        licence="public domain",
        about="Annual flow of the Nile at Aswan, 1871 to 1970, in 10^8 cubic metres.",
    )


@hookimpl
def separata_event(event: object) -> None:
    """Note each event's name in the file that NILE_EVENTS names."""
    if file := os.environ.get("NILE_EVENTS"):
        with open(file, "a", encoding="utf-8") as log:
            log.write(f"{type(event).__name__}\n")
