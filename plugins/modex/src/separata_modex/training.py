"""One training loop for the method and its peers, so that they differ in heads and loss alone."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

Loss = Callable[[Any, Tensor, int], Tensor]
LARGEST_GRADIENT = 5.0


def train(
    network: nn.Module,
    loss: Loss,
    features: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    validation_fraction: float,
    patience: int,
    generator: torch.Generator,
) -> int:
    """Adam with early stopping on held-out rows; the best epoch's parameters are kept, not the last one's.

    Args:
        network: Changed in place.
        loss: Of the network's output, the labels and the epoch.
        features: ``(N, D)``.
        labels: Classes ``(N,)``, int64.
        epochs: The most passes over the data.
        learning_rate: Of Adam; a tenth after 100 epochs.
        batch_size: Rows a step.
        validation_fraction: Share of rows held out; below two rows the training loss decides. The only
            rows of a class are not held out.
        patience: Epochs without a better loss before it stops.
        generator: Decides the held-out rows and the order.

    Returns:
        The best epoch, from 0.
    """
    order = torch.randperm(len(features), generator=generator)
    held = int(len(features) * validation_fraction)
    held_out, rows = order[:held], order[held:]
    # A class whose only rows were held out could not be learned.
    learned = torch.isin(labels[held_out], labels[rows])
    held_out, rows = held_out[learned], torch.cat([rows, held_out[~learned]])
    if len(held_out) < 2:
        held_out = rows = order
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.1)
    best, best_epoch, kept = float("inf"), 0, deepcopy(network.state_dict())
    for epoch in range(epochs):
        network.train()
        for batch in rows[torch.randperm(len(rows), generator=generator)].split(batch_size):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            loss(network(features[batch]), labels[batch], epoch).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
            optimizer.step()
        schedule.step()
        network.eval()
        with torch.no_grad():
            # Losses that anneal are compared at their final weight.
            now = float(loss(network(features[held_out]), labels[held_out], epochs))
        if now < best:
            best, best_epoch, kept = now, epoch, deepcopy(network.state_dict())
        elif epoch - best_epoch >= patience:
            break
    network.load_state_dict(kept)
    network.eval()
    return best_epoch
