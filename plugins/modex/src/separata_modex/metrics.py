"""Calibration, and how well an uncertainty tells strangers apart, with torchmetrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.metrics import log_loss
from torch.nn import functional as F
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
    multiclass_calibration_error,
)

BINS = 15


def calibration(probabilities: Any, codes: Any) -> dict[str, float]:
    """Accuracy, expected calibration error (15 bins), Brier score and log loss.

    Args:
        probabilities: ``(N, K)``.
        codes: The true classes as positions ``0..K-1``, ``(N,)``.
    """
    found = torch.as_tensor(np.asarray(probabilities), dtype=torch.float64)
    truth = torch.as_tensor(np.asarray(codes)).long()
    classes = found.shape[-1]
    error = multiclass_calibration_error(found, truth, num_classes=classes, n_bins=BINS)
    return {
        "accuracy": float((found.argmax(-1) == truth).double().mean()),
        "ece": float(error),
        "brier": float((found - F.one_hot(truth, classes)).square().sum(-1).mean()),
        "nll": float(log_loss(truth.numpy(), found.numpy(), labels=range(classes))),
    }


def separation(known: Any, strange: Any) -> dict[str, float]:
    """AUROC and average precision of an uncertainty that should be higher on strange rows.

    Args:
        known: Uncertainty of rows like those of training, ``(N,)``.
        strange: Uncertainty of rows unlike them, ``(M,)``.
    """
    parts = [torch.as_tensor(np.asarray(part), dtype=torch.float64) for part in (known, strange)]
    # torchmetrics squashes scores outside [0, 1] by a sigmoid, which rounds ties; ranks are exact.
    ranks = torch.unique(torch.cat(parts), return_inverse=True)[1].double()
    scores = ranks / ranks.max().clamp_min(1)
    truth = torch.cat([torch.zeros(len(parts[0])), torch.ones(len(parts[1]))]).long()
    return {
        "auroc": float(binary_auroc(scores, truth)),
        "aupr": float(binary_average_precision(scores, truth)),
    }
