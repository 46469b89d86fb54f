"""The proofs: each measures one figure on real input and holds it against its bound."""

from __future__ import annotations

import csv

from separata.claims import Evidence, Trial, at_most


def flow_fell(trial: Trial) -> Evidence:
    """The mean flow from 1899 on, as a share of the mean flow before."""
    import torch

    from .estimator import MeanEstimator

    with trial.input("nile-flow").open(encoding="utf-8") as file:
        rows = [(int(row["year"]), float(row["flow"])) for row in csv.DictReader(file)]
    before = torch.tensor([flow for year, flow in rows if year < 1899])
    after = torch.tensor([flow for year, flow in rows if year >= 1899])
    share = MeanEstimator().fit(after).estimate_.value / MeanEstimator().fit(before).estimate_.value
    return Evidence(share, at_most(0.8), "share")
