"""What every trainer keeps: it learns, it can be stopped, and the machines do not show in the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs
import torch
from safetensors.torch import load_file
from torch import Tensor

from separata.records import Offer

from .checks import CheckFailed, need, same, suite
from .examples import TrainerExample


@attrs.frozen
class TrainerSubject:
    """A trainer on trial; the path of its example is kept for the processes that are started."""

    example: TrainerExample
    path: str

    def fit(self, folder: str, steps: int, *, resume: bool = False) -> dict[str, Tensor]:
        """Train in this process, with the global random state given back afterwards."""
        with torch.random.fork_rng(devices=[]):
            return self.example.fit(Path(folder), steps, self.example.batch_size, resume)


def learns(subject: TrainerSubject) -> None:
    """The loss falls."""
    with tempfile.TemporaryDirectory() as folder:
        start = subject.example.loss(subject.fit(folder, 0))
    with tempfile.TemporaryDirectory() as folder:
        end = subject.example.loss(subject.fit(folder, subject.example.steps))
    need(end < start, f"the loss goes from {start:.6g} to {end:.6g}")


def trains_the_same_again(subject: TrainerSubject) -> None:
    """The same seed gives the same parameters, bit for bit, whatever the global random state."""
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        with tempfile.TemporaryDirectory() as folder:
            results.append(subject.fit(folder, subject.example.steps))
    need(same(results[0], results[1]), "two trainings with the same seed differ")


def resumes_bit_for_bit(subject: TrainerSubject) -> None:
    """Stopped half way and resumed from its checkpoint it ends with the same bits."""
    half = subject.example.steps // 2
    with tempfile.TemporaryDirectory() as folder:
        whole = subject.fit(folder, subject.example.steps)
    with tempfile.TemporaryDirectory() as folder:
        subject.fit(folder, half)
        resumed = subject.fit(folder, subject.example.steps, resume=True)
    need(same(whole, resumed), "the resumed training ends with other parameters")


def survives_a_kill(subject: TrainerSubject) -> None:
    """Killed as soon as there is a checkpoint, and resumed, it ends with the same bits."""
    with tempfile.TemporaryDirectory() as folder:
        whole = subject.fit(folder, subject.example.steps)
    with tempfile.TemporaryDirectory() as folder:
        kill_while_training(subject.path, subject.example.steps, subject.example.batch_size, Path(folder))
        resumed = subject.fit(f"{folder}/checkpoint", subject.example.steps, resume=True)
    need(same(whole, resumed), "the training that was killed and resumed ends with other parameters")


def is_the_same_on_two_processes(subject: TrainerSubject) -> None:
    """Two processes with half the batch each end where one ends, to the last digits of float64."""
    with tempfile.TemporaryDirectory() as folder:
        one = subject.fit(folder, subject.example.steps)
    two = two_processes(subject.path, subject.example.steps, subject.example.batch_size)
    for name, tensor in one.items():
        gap = float((tensor.double() - two[name].double()).abs().max()) if tensor.numel() else 0.0
        need(gap <= 1e-9, f"{name} differs by {gap:.3g} between one process and two")


def subject(_: str, offer: Offer, example: TrainerExample) -> TrainerSubject:
    """The trainer of an example."""
    return TrainerSubject(example, offer.example or "")


CHECKS = suite(
    learns, trains_the_same_again, resumes_bit_for_bit, survives_a_kill, is_the_same_on_two_processes
)


def kill_while_training(path: str, steps: int, batch_size: int, folder: Path) -> None:
    """Run an example's ``fit`` in a process of its own and send it SIGKILL once it has left a checkpoint.

    Args:
        path: Import path of the function that gives the ``TrainerExample``.
        steps: How many steps it would do.
        batch_size: Samples a step.
        folder: It checkpoints in ``checkpoint`` below this folder.
    """
    command = [sys.executable, "-m", "separata.testing.worker", _order(path, steps, batch_size, folder)]
    # Threads decide in which order sums are taken, so that other bits come from another number of them.
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(command, env=environment) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if any((folder / "checkpoint").glob("[!.]*")):
                break
            time.sleep(0.001)
        process.kill()


def two_processes(path: str, steps: int, batch_size: int) -> dict[str, Tensor]:
    """Run an example's ``fit`` in two gloo processes and return the parameters of the first.

    Args:
        path: Import path of the function that gives the ``TrainerExample``.
        steps: How many steps.
        batch_size: Samples a step, over both processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        order = _order(path, steps, batch_size, Path(folder))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        # Processes now and then fail to find each other on a busy machine; a trainer's own fault fails twice.
        command += ["--max-restarts", "1"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        done = subprocess.run(
            [*command, "-m", "separata.testing.worker", order],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "Error" in line]
            raise CheckFailed(f"two processes failed: {lines[-1] if lines else done.stderr[-200:]}")
        return load_file(Path(folder) / "parameters.safetensors")


def _order(path: str, steps: int, batch_size: int, folder: Path) -> str:
    """What the worker is told, as its only argument."""
    return json.dumps({"path": path, "steps": steps, "batch_size": batch_size, "folder": str(folder)})
