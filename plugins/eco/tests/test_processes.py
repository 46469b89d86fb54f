"""Two processes that share each batch end where one does."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from separata_eco.cli import app

WORDS = ["train", "--steps", "4", "--batch", "4", "--length", "16", "--lr", "1e-2", "--out"]
# Processes now and then fail to find each other on a busy machine; a fault of ours fails twice.
LAUNCH = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]


def losses(out: Path) -> list[float]:
    with (out / "loss.csv").open(newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def test_two_processes_are_one(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert CliRunner().invoke(app, [*WORDS, str(one)]).exit_code == 0
    done = subprocess.run(
        [sys.executable, *LAUNCH, "-m", "separata_cli", "eco", *WORDS, str(two), "--ddp"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert losses(two) == pytest.approx(losses(one), abs=2e-3)
