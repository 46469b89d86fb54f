"""The paper's claims on what is loaded and what it costs, on small mixtures of experts trained on real text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from separata.claims import Evidence, Trial, at_most
from separata_kit_llm import tiny

from . import example_model
from .config import OEAConfig
from .evaluation import Score, compare, piggybacked, pruned, rows_of
from .expectation import estimate_T, record_scores
from .patching import patch_moe
from .peers import PopularExperts

SEEDS, BATCH, ROWS, LENGTH = 3, 16, 32, 128


def fewer_experts(trial: Trial) -> Evidence:
    """Experts hit with k0 = k/2 over those of the plain model, sixteen rows a step; the worst of three seeds."""
    table = [_row(seed, score) for seed, score in _scores(trial, {"oea": piggybacked(2)})]
    return Evidence(
        max(row["oea_experts"] / row["plain_experts"] for row in table), at_most(0.75), "ratio", table=table
    )


def quality_kept(trial: Trial) -> Evidence:
    """Rise of cross-entropy with k0 = k/2 over that of plain top-k0; the worst of three seeds."""
    routings = {"oea": piggybacked(2), "pruned": pruned(2)}
    table, subtracted = [], []
    for seed, score in _scores(trial, routings):
        row = _row(seed, score)
        # Lynx's subtraction keeps as many experts as we load.
        kept = round(score["oea"].mean("experts_hit"))
        other = compare(_model(trial, seed), _rows(ROWS, LENGTH), {"lynx": _popular(kept)}, batch=BATCH)
        row |= _row(seed, {"plain": score["plain"], "lynx": other["lynx"]})
        row["share"] = row["oea_rise"] / row["pruned_rise"]
        subtracted.append(row["lynx_rise"] / row["pruned_rise"])
        table.append(row)
    return Evidence(
        max(row["share"] for row in table),
        at_most(0.4),
        "of the rise of top-k0",
        peers={"top-k0": 1.0, "popular experts (Lynx)": max(subtracted)},
        table=table,
    )


def batch_helps(trial: Trial) -> Evidence:
    """How much the rise of cross-entropy grows at most when the batch does, 4 to 16 to 32 rows; mean of the seeds."""
    rises: dict[int, float] = {}
    for batch in (4, 16, 32):
        rows = [
            _row(seed, compare(_model(trial, seed), _rows(ROWS, 64), {"oea": piggybacked(2)}, batch=batch))
            for seed in _seeds(trial)
        ]
        rises[batch] = sum(row["oea_rise"] for row in rows) / len(rows)
    steps = list(rises.values())
    return Evidence(
        max(later - earlier for earlier, later in pairwise(steps)),
        at_most(0.0),
        "nats",
        table=[{"batch": batch, "rise": rise} for batch, rise in rises.items()],
    )


def prompt_untouched(trial: Trial) -> Evidence:
    """Largest difference of any logit of a prompt between the patched and the plain model."""
    model = _model(trial, trial.seed)
    ids = _rows(BATCH, LENGTH)
    with torch.no_grad():
        before = model(ids).logits
        with patch_moe(model, OEAConfig(k0=1)):
            within = model(ids, use_cache=True).logits
        after = model(ids).logits
    apart = max(float((other - before).abs().max()) for other in (within, after))
    return Evidence(apart, at_most(0.0), "logits")


def load_predicted(trial: Trial) -> Evidence:
    """Relative error of the experts predicted from training text for decoding held-out text; the worst of the seeds."""
    train, _ = example_model.texts()
    table = []
    for seed in _seeds(trial):
        model = _model(trial, seed)
        with torch.no_grad(), record_scores(model) as recorded:
            model(rows_of(train, ROWS, LENGTH))
        predicted = [float(estimate_T(torch.cat(parts), 2, BATCH).value) for parts in recorded.values()]
        found = compare(model, _rows(ROWS, LENGTH), {"oea": piggybacked(2)}, batch=BATCH)
        measured, guess = found["oea"].mean("experts_hit"), sum(predicted) / len(predicted)
        table.append({"seed": seed, "predicted": guess, "measured": measured})
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in table]
    return Evidence(max(errors), at_most(0.05), "relative error", table=table)


def _seeds(trial: Trial) -> range:
    return range(trial.seed, trial.seed + SEEDS)


def _model(trial: Trial, seed: int) -> Any:
    """The trained model of a seed, from the user's cache after the first time."""

    def build(folder: Path) -> None:
        tiny.save(example_model.trained(seed)[0], folder)

    return tiny.load(trial.keep("moe", build, settings={"seed": seed, "steps": example_model.STEPS}))


def _rows(rows: int, length: int) -> torch.Tensor:
    return rows_of(example_model.texts()[1], rows, length)


def _popular(kept: int) -> Any:
    return lambda k: PopularExperts(k, kept)


def _scores(trial: Trial, routings: dict[str, Any]) -> list[tuple[int, dict[str, Score]]]:
    rows = _rows(ROWS, LENGTH)
    return [(seed, compare(_model(trial, seed), rows, routings, batch=BATCH)) for seed in _seeds(trial)]


def _row(seed: int, scores: dict[str, Score]) -> dict[str, Any]:
    base = scores["plain"].cross_entropy
    row: dict[str, Any] = {"seed": seed, "plain_ce": base}
    for name, score in scores.items():
        row[f"{name}_experts"] = score.mean("experts_hit")
        if name != "plain":
            row[f"{name}_rise"] = score.cross_entropy - base
    return row
