"""The loss that MoDEX is trained with."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .distribution import ExtendedFlexibleDirichlet
from .errors import InvalidLabels, InvalidSetting


def modex_loss(
    law: ExtendedFlexibleDirichlet,
    target: Tensor,
    *,
    advocacy_weight: float = 1.0,
    smoothing: float = 0.1,
    kl_direction: str = "forward",
    kind: str = "brier",
) -> Tensor:
    """``|mean - y|^2 + |plausibility - y|^2 + weight * KL(smoothed y || softmax(advocacy))``, mean over rows.

    Args:
        law: The heads' law, ``(B, K)``.
        target: Classes ``(B,)``, int64, or soft labels ``(B, K)`` whose rows sum to 1.
        advocacy_weight: Weight of the advocates' supervision; 0 leaves it out.
        smoothing: Label smoothing of that term: ``1 - smoothing`` on the class, the rest evenly.
        kl_direction: ``forward`` as in the authors' code, or ``reverse``, ``KL(softmax(advocacy) || smoothed y)``.
        kind: ``brier``, or ``nll`` for the expected negative log-likelihood in place of the first term.

    Raises:
        InvalidLabels: If the labels are no classes or soft labels.
        InvalidSetting: If ``kl_direction`` or ``kind`` is unknown.
    """
    mean = law.mean
    truth = one_hot(target, law.event_shape[0]).to(mean.dtype)
    if kind not in ("brier", "nll"):
        raise InvalidSetting(f"kind is {kind!r}", "give brier or nll")
    if kl_direction not in ("forward", "reverse"):
        raise InvalidSetting(f"kl_direction is {kl_direction!r}", "give forward or reverse")
    fit = (mean - truth).square() if kind == "brier" else law.expected_nll() * truth
    loss = fit.sum(-1) + (law.plausibility - truth).square().sum(-1)
    if advocacy_weight:
        rest = smoothing / (truth.shape[-1] - 1)
        smoothed = (truth * (1 - smoothing - rest) + rest).log()
        said = law.advocacy.log_softmax(-1)
        first, second = (smoothed, said) if kl_direction == "forward" else (said, smoothed)
        loss = loss + advocacy_weight * F.kl_div(second, first, reduction="none", log_target=True).sum(-1)
    result: Tensor = loss.mean()
    return result


def one_hot(target: Tensor, classes: int) -> Tensor:
    """Labels as rows of probabilities.

    Raises:
        InvalidLabels: If classes lie outside ``0..K-1`` or rows of soft labels do not sum to 1.
    """
    if target.ndim == 1 and not target.is_floating_point():
        if len(target) and not (int(target.min()) >= 0 and int(target.max()) < classes):
            raise InvalidLabels(
                f"labels run from {int(target.min())} to {int(target.max())}", f"give 0 to {classes - 1}"
            )
        return F.one_hot(target.long(), classes)
    if target.ndim != 2 or target.shape[1] != classes:
        raise InvalidLabels(f"labels have shape {tuple(target.shape)}", f"give (rows,) or (rows, {classes})")
    sums = target.sum(-1, dtype=torch.float64)
    if (target < 0).any() or not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        raise InvalidLabels(
            "soft labels do not sum to 1 in each row", "give one class a row, or probabilities"
        )
    return target
