"""Linear regression by gradient descent, a working example of a trainer: put the paper's training here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor

from separata.files import atomic_file

if TYPE_CHECKING:
    from separata import Placement


class RegressionTrainer:
    """Fits `y = x w` by gradient descent with momentum; each process takes its share of the batch.

    Args:
        x: A `samples x features` float64 tensor.
        y: A `samples` float64 tensor.
        learning_rate: The step size.
    """

    def __init__(self, x: Tensor, y: Tensor, learning_rate: float = 0.2) -> None:
        self.x = x
        self.y = y
        self.learning_rate = learning_rate

    def fit(
        self, model: Any, data: Any, *, placement: Placement | None = None, resume: Path | None = None
    ) -> dict[str, Tensor]:
        """Train for 100 steps; the model is the folder for its checkpoint."""
        return self.train(Path(model), 100, len(data), resume is not None)

    def train(self, folder: Path, steps: int, batch_size: int, resume: bool) -> dict[str, Tensor]:
        """Train up to a step and leave a checkpoint after each.

        Args:
            folder: Where the checkpoint goes, or comes from.
            steps: The step to stop at.
            batch_size: Samples a step, over all processes.
            resume: Whether to go on from the folder's checkpoint, if there is one.

        Returns:
            The parameters: ``weight``, a `features` tensor.
        """
        processes = _processes()
        rank = dist.get_rank() if processes > 1 else 0
        file = folder / "state.safetensors"
        state = load_file(file) if resume and file.exists() else self._start()
        weight, momentum = state["weight"], state["momentum"]
        share = batch_size // processes
        for step in range(int(state["step"]), steps):
            rows = (torch.arange(share) + step * batch_size + rank * share) % len(self.x)
            gradient = self.x[rows].T @ (self.x[rows] @ weight - self.y[rows])
            if processes > 1:
                dist.all_reduce(gradient)
            momentum = 0.5 * momentum + gradient / batch_size
            weight = weight - self.learning_rate * momentum
            if rank == 0:
                reached = {"weight": weight, "momentum": momentum, "step": torch.tensor(step + 1)}
                with atomic_file(file) as partial:
                    save_file(reached, partial)
        return {"weight": weight}

    def _start(self) -> dict[str, Tensor]:
        zeros = torch.zeros(self.x.shape[1], dtype=self.x.dtype)
        return {"weight": zeros, "momentum": zeros.clone(), "step": torch.tensor(0)}


def _processes() -> int:
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1 and not dist.is_initialized():
        dist.init_process_group("gloo")
    return processes
