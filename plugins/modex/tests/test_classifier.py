"""The estimator and its peers on arrays, and their scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

from separata_modex import MoDEXClassifier, calibration, errors, peers, separation
from separata_modex.cli import app


def test_scikit_learn_accepts_it() -> None:
    check_estimator(
        MoDEXClassifier((8,), epochs=4, learning_rate=0.05, batch_size=32, spectral=False, random_state=0)
    )


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_real_tables_are_learned(load: Any) -> None:
    X, y = load(return_X_y=True)
    model = MoDEXClassifier(epochs=20, learning_rate=2e-3, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    frame = model.predict_uncertainty(X)
    np.testing.assert_allclose(frame["epistemic"], frame["inter"] + frame["intra"])


@pytest.mark.parametrize(
    "peer",
    [
        peers.SoftmaxClassifier(random_state=0, epochs=20, learning_rate=2e-3),
        peers.EDLClassifier(random_state=0, epochs=20, learning_rate=5e-3),
        peers.FEDLClassifier(random_state=0, epochs=20, learning_rate=2e-3),
        peers.DeepEnsemble(peers.SoftmaxClassifier(epochs=20, learning_rate=2e-3), 2),
    ],
)
def test_peers_learn_too(peer: Any) -> None:
    X, y = load_wine(return_X_y=True)
    peer.fit(X, y)
    assert (peer.predict(X) == y).mean() > 0.9
    assert peer.uncertainty(X).shape == (len(X),)


def test_an_ensembles_entropy_is_its_members_own_and_their_disagreement() -> None:
    X, y = load_wine(return_X_y=True)
    ensemble = peers.DeepEnsemble(peers.SoftmaxClassifier((8,), epochs=2), 3).fit(X, y)
    own = np.mean([member.uncertainty(X) for member in ensemble.members_], axis=0)
    np.testing.assert_allclose(ensemble.entropy(X), own + ensemble.uncertainty(X))
    assert (ensemble.uncertainty(X) > 0).all()


def test_loading_leaves_the_global_generator(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    MoDEXClassifier((8,), epochs=1).fit(X, y).save(tmp_path)
    before = torch.get_rng_state()
    MoDEXClassifier.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_settings_and_labels_are_checked() -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.raises(errors.InvalidSetting, match="epochs 0"):
        MoDEXClassifier(epochs=0).fit(X, y)
    with pytest.raises(errors.InvalidLabels, match="one class"):
        MoDEXClassifier().fit(X, np.zeros(len(X)))
    model = MoDEXClassifier(epochs=1).fit(X, y)
    with pytest.raises(errors.InvalidLabels, match="not seen in training: 7"):
        model.codes([0, 7])


def test_a_declared_class_without_rows_is_told() -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.warns(errors.AbsentClass, match="no training row has class 7"):
        model = MoDEXClassifier((8,), epochs=2, classes=[0, 1, 2, 7]).fit(X, y)
    assert model.predict_proba(X).shape == (len(X), 4)
    with pytest.raises(errors.InvalidLabels, match="not seen in training: 2"):
        MoDEXClassifier(classes=[0, 1]).fit(X, y)


def test_a_saved_model_keeps_its_declared_classes(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.warns(errors.AbsentClass):
        model = MoDEXClassifier((8,), epochs=2, classes=[0, 1, 2, 7]).fit(X, y)
    model.save(tmp_path / "model")
    loaded = MoDEXClassifier.load(tmp_path / "model")
    assert loaded.classes_.tolist() == [0, 1, 2, 7]
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_scores_of_known_cases() -> None:
    assert separation([0.1, 0.2], [5.0, 6.0]) == {"auroc": 1.0, "aupr": 1.0}
    found = calibration([[1.0, 0.0], [1.0, 0.0]], [0, 1])
    assert (found["accuracy"], found["ece"], found["brier"]) == pytest.approx((0.5, 0.5, 1.0))


def test_the_command_line_from_training_to_scores(tmp_path: Path) -> None:
    frame = load_wine(as_frame=True).frame
    frame.to_csv(tmp_path / "wine.csv", index=False)
    (frame + 100).to_csv(tmp_path / "other.csv", index=False)
    short = str(tmp_path / "short.csv")
    frame[["alcohol"]].to_csv(short, index=False)
    table, model, other = str(tmp_path / "wine.csv"), str(tmp_path / "model"), str(tmp_path / "other.csv")

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, list(words))

    assert run("fit", table, "--target", "target", "--out", model, "--epochs", "5").exit_code == 0
    rows = json.loads(run("predict", model, table, "--json").stdout)
    loaded = MoDEXClassifier.load(model)
    assert [row["class"] for row in rows] == loaded.predict(frame.drop(columns="target")).tolist()
    court = json.loads(run("explain", model, table, "--row", "3", "--json").stdout)
    assert sum(row["verdict"] for row in court) == pytest.approx(1)
    words = ["ood", model, "--id", table, "--ood", other, "--target", "target", "--json"]
    assert {"auroc", "aupr", "ece", "brier"} < set(json.loads(run(*words).stdout))
    assert "no column label" in str(run("fit", table, "--target", "label", "--out", model).exception)
    assert "no row 999" in str(run("explain", model, table, "--row", "999").exception)
    assert "lacks" in str(run("predict", model, short).exception)


def test_a_figure_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra")
    from separata_modex.plots import save

    model = MoDEXClassifier((8,), epochs=2, random_state=0)
    X, y = load_wine(return_X_y=True)
    frames = [model.fit(X, y).predict_uncertainty(rows) for rows in (X, X + 100)]
    save(*frames, tmp_path / "ood.png")
    assert (tmp_path / "ood.png").read_bytes().startswith(b"\x89PNG")
