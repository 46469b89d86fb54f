from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from separata_eco import plots


def test_drift_is_drawn(tmp_path: Path) -> None:
    rows = [{"weight": f"layer.{i}", "norm_ratio": 1.0, "cosine": 0.1 * i} for i in range(4)]
    plots.drift(rows, tmp_path / "drift.png")
    assert (tmp_path / "drift.png").read_bytes().startswith(b"\x89PNG")


def test_losses_are_drawn_also_as_they_were_read(tmp_path: Path) -> None:
    plots.losses([{"step": "0", "loss": "5.5"}, {"step": 1, "loss": 5.0}], 4.9, tmp_path / "loss.pdf")
    assert (tmp_path / "loss.pdf").read_bytes().startswith(b"%PDF")
