"""Each check of a trainer catches the fault it is for, and no other."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from separata.testing import Site
from separata.testing.conformance import Case
from separata.testing.trainers import CHECKS, TrainerSubject

# A right trainer: linear regression by SGD with momentum, data parallel by hand, in float64.
TRAINER = """
import os
from pathlib import Path
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from separata.files import atomic_file
from separata.testing import TrainerExample

def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    return x, x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

def fit(folder, steps, batch_size, resume):
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("gloo")
    rank = dist.get_rank() if world > 1 else 0
    x, y = data()
    weight = torch.zeros(3, dtype=torch.float64)
    momentum = torch.zeros_like(weight)
    first = 0
    if resume and (folder / "state.safetensors").exists():
        state = load_file(folder / "state.safetensors")
        weight, momentum, first = state["weight"], state["momentum"], int(state["step"])
    share = batch_size // world
    for step in range(first, steps):
        start = step * batch_size % 64 + rank * share
        rows = slice(start, start + share)
        error = x[rows] @ weight - y[rows]
        gradient = x[rows].T @ error
        if world > 1:
            dist.all_reduce(gradient)
        momentum = 0.5 * momentum + gradient / batch_size
        weight = weight - 0.2 * momentum
        if rank == 0:
            state = {"weight": weight, "momentum": momentum, "step": torch.tensor(step + 1)}
            with atomic_file(folder / "state.safetensors") as file:
                save_file(state, file)
    return {"weight": weight}

def loss(parameters):
    x, y = data()
    return float(((x @ parameters["weight"] - y) ** 2).mean())

def example():
    return TrainerExample(fit=fit, loss=loss)
"""
FAULTS = {
    "right": (),
    "learnsnothing": ("weight = weight - 0.2 * momentum", "weight = weight + 0.2 * momentum"),
    "drawsglobally": (
        "weight = torch.zeros(3, dtype=torch.float64)",
        "weight = 0.1 * torch.rand(3, dtype=torch.float64)",
    ),
    "forgetsmomentum": ('state["momentum"], int', "torch.zeros_like(momentum), int"),
    # It waits with a wrong step on the disk, so that the kill finds it there.
    "miscounts": (
        "                save_file(state, file)",
        "                state['step'] += (step == 0)\n                save_file(state, file)\n"
        "            if step == 0: import time; time.sleep(1)",
    ),
    "meansofshares": ("gradient / batch_size", "gradient / share"),
}


@pytest.mark.parametrize(
    ("fault", "caught"),
    [
        ("right", []),
        ("learnsnothing", ["learns"]),
        ("forgetsmomentum", ["resumes-bit-for-bit"]),
        ("miscounts", ["survives-a-kill"]),
        ("meansofshares", ["is-the-same-on-two-processes"]),
    ],
)
def test_a_fault_fails_exactly_its_check(
    fault: str, caught: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures(fault, tmp_path, monkeypatch) == caught


def test_a_hidden_seed_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No two trainings agree then, so the checks that compare two of them see it as well.
    assert "trains-the-same-again" in failures("drawsglobally", tmp_path, monkeypatch)


def failures(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    site = Site(folder)
    source = TRAINER.replace(*FAULTS[fault]) if FAULTS[fault] else TRAINER
    site.add(fault, files={"training.py": source})
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    module = importlib.import_module(f"separata_{fault}.training")
    # Processes take seconds to start: the last two checks are spared where they could show nothing new.
    last = {"right": None, "meansofshares": None, "miscounts": -1}.get(fault, -2)
    checks = CHECKS[:last]
    subject = TrainerSubject(module.example(), f"separata_{fault}.training:example")
    return [check.name for check in checks if Case("trainer", "toy", check, subject).run().state == "failed"]
