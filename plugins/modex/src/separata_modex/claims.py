"""The paper's claims put to the proof on scikit-learn's handwritten digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from separata.claims import Evidence, Race, Trial, at_least, at_most, race

from .benchmarks import forward
from .classifier import MoDEXClassifier
from .head import MoDEXHead
from .metrics import calibration, separation
from .peers import DeepEnsemble, EDLClassifier, FEDLClassifier, SoftmaxClassifier
from .references import efd_moments_reference

SEEDS = 3
KNOWN_CLASSES = 8
RAREST = 0.05
METHODS: dict[str, Callable[[int], Any]] = {
    "MoDEX": lambda seed: MoDEXClassifier(random_state=seed),
    "F-EDL": lambda seed: FEDLClassifier(random_state=seed),
    "EDL": lambda seed: EDLClassifier(random_state=seed),
    "softmax": lambda seed: SoftmaxClassifier(random_state=seed),
    "ensemble of 3": lambda seed: DeepEnsemble(SoftmaxClassifier(), 3, seed),
}


def strangers(trial: Trial) -> Evidence:
    """Digits 0 to 7 are learned, 8 and 9 are strange: mean AUROC of three seeds."""
    rows = _kept(trial, "balanced", _balanced)
    found = {row["method"]: row["auroc"] for row in rows}
    return Evidence(
        found["MoDEX"],
        at_least(max(found["EDL"] + 0.02, found["softmax"] - 0.01)),
        "AUROC",
        peers={name: value for name, value in found.items() if name != "MoDEX"},
        table=rows,
    )


def turned(trial: Trial) -> Evidence:
    """Test digits turned by a right angle against the same upright: mean AUROC of three seeds."""
    rows = _kept(trial, "balanced", _balanced)
    peers = {row["method"]: row["turned auroc"] for row in rows}
    ours = peers.pop("MoDEX")
    return Evidence(
        ours,
        at_least(max(peers.values())),
        "AUROC",
        peers=peers,
        table=rows,
        note="Pixels are standardised: ones that upright digits leave empty are far out in turned ones, "
        "where softmax and EDL are surest.",
    )


def long_tail(trial: Trial) -> Evidence:
    """The same with a training set whose classes thin out to a twentieth: mean accuracy of three seeds."""
    rows = _kept(trial, "long-tail", _long_tailed)
    found = {row["method"]: row["accuracy"] for row in rows}
    return Evidence(
        found["MoDEX"],
        at_least(found["softmax"] + 0.10),
        "accuracy",
        peers={name: value for name, value in found.items() if name != "MoDEX"},
        table=rows,
    )


def exact_split(trial: Trial) -> Evidence:
    """The closed forms against every advocate's own Dirichlet, on all digits; the largest difference."""
    X, y = load_digits(return_X_y=True)
    model = MoDEXClassifier(epochs=5, random_state=trial.seed).fit(X, y)
    frame = model.predict_uncertainty(X)
    reference = efd_moments_reference(*model.evidence(X))
    worst = max(
        float(np.abs(frame["inter"] - reference.between.sum(-1).numpy()).max()),
        float(np.abs(frame["intra"] - reference.within.sum(-1).numpy()).max()),
    )
    return Evidence(worst, at_most(1e-12), "variance")


def one_pass(trial: Trial) -> Evidence:
    """256 rows through the same perceptron: one pass with moments against twenty with dropout."""
    generator = trial.generator()
    rows = torch.randn(256, 64, generator=generator)
    body = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
    head = MoDEXHead(512, 10, spectral=False).eval()
    dropped = nn.Sequential(body, nn.Dropout(), nn.Linear(512, 10)).train()

    @torch.no_grad()
    def ours() -> object:
        return head(body(rows)).law.variance

    @torch.no_grad()
    def peer() -> object:
        return torch.stack([dropped(rows).softmax(-1) for _ in range(20)]).var(0)

    timing = race(Race(256, ours, peer), rounds=20)
    return Evidence(timing.ratio, at_least(15), "times as fast", peers={"20 dropout passes": 1.0})


def forward_cost(trial: Trial) -> Evidence:
    """Multiplications of matrix products, over 1000 classes, over those with a softmax layer below three times 2048."""
    both = forward(1000, trial)
    ours, softmax = (_flops(run) for run in (both.ours, both.peer))
    return Evidence(
        ours / softmax,
        at_most(1.1),
        "of the multiplications",
        peers={"softmax": 1.0},
        note="The time, with exponentials and moments, is what `separata bench modex forward` measures.",
    )


def _flops(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def _kept(trial: Trial, name: str, select: Callable[..., Any]) -> list[dict[str, Any]]:
    """Each method's mean scores, trained once."""

    def build(folder: Path) -> None:
        (folder / "scores.json").write_text(json.dumps(_scores(trial.seed, select)))

    rows: list[dict[str, Any]] = json.loads((trial.keep(name, build) / "scores.json").read_text())
    return rows


def _scores(first: int, select: Callable[..., Any]) -> list[dict[str, Any]]:
    X, y = load_digits(return_X_y=True)
    known = y < KNOWN_CLASSES
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(first, first + SEEDS):
        train_X, test_X, train_y, test_y = train_test_split(
            X[known], y[known], test_size=0.3, stratify=y[known], random_state=seed
        )
        kept = select(train_y, np.random.default_rng(seed))
        for name, make in METHODS.items():
            model = make(seed).fit(train_X[kept], train_y[kept])
            scores = calibration(model.predict_proba(test_X), test_y)
            for row, uncertainty in _uncertainties(name, model).items():
                told = separation(uncertainty(test_X), uncertainty(X[~known]))
                turned = separation(uncertainty(test_X), uncertainty(_turned(test_X)))
                found.setdefault(row, []).append(scores | told | {"turned auroc": turned["auroc"]})
    return [
        {"method": name} | {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        for name, rows in found.items()
    ]


def _uncertainties(name: str, model: Any) -> dict[str, Callable[[Any], NDArray[Any]]]:
    """What tells a method's strange rows, by name of its row; an ensemble is scored as it was published, too."""
    if isinstance(model, DeepEnsemble):
        return {name: model.uncertainty, f"{name}, entropy": model.entropy}
    return {name: model.uncertainty}


def _turned(X: NDArray[Any]) -> NDArray[Any]:
    return np.rot90(X.reshape(-1, 8, 8), axes=(1, 2)).reshape(len(X), -1)


def _balanced(labels: NDArray[Any], _: np.random.Generator) -> NDArray[Any]:
    return np.arange(len(labels))


def _long_tailed(labels: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Rows of class c kept with a share that falls geometrically from 1 to a twentieth."""
    rows = []
    for code in range(KNOWN_CLASSES):
        own = generator.permutation(np.flatnonzero(labels == code))
        rows.append(own[: max(1, round(len(own) * RAREST ** (code / (KNOWN_CLASSES - 1))))])
    return np.concatenate(rows)
