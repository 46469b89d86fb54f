"""GPTQ on 4-bit blocks: columns are rounded one after the other, and those that follow make up for the error.

A block's grid and scale are fixed before its first column is rounded, from the weights as compensated until then.
GPTQ: Frantar et al., "Accurate Post-Training Quantization for Generative Pre-trained Transformers", ICLR 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .blocks import choose, largest_of, on_grid
from .errors import BadCodes
from .quantizer import blocked
from .tensor import MixFP4Tensor, assemble


def gptq(
    weight: Tensor, hessian: Tensor, *, method: str = "mixfp4", group: int = 16, damping: float = 0.01
) -> MixFP4Tensor:
    """Quantise a weight for the inputs that it will meet.

    Args:
        weight: An ``N x K`` floating tensor, K a multiple of ``group``.
        hessian: A ``K x K`` tensor: the sum of ``x x^T`` over the layer's inputs.
        method: As for ``quantize``.
        group: Elements of a block.
        damping: Added to the Hessian's diagonal, as a share of its mean.

    Raises:
        BadCodes: If the Hessian does not fit the weight.
    """
    rows, columns = weight.shape
    if hessian.shape != (columns, columns):
        raise BadCodes(
            f"a Hessian of shape {tuple(hessian.shape)} for a weight of shape {tuple(weight.shape)}",
            "it has one row and one column for each of the weight's columns",
        )
    cut = blocked(weight, method, group, "mse", False, False)
    work = cut.blocks.view(rows, columns).clone()
    factor = _inverse_factor(hessian.to(work.dtype), damping)
    elements, scales, uniform = torch.empty_like(work), [], []
    for begin in range(0, columns, group):
        block = work[:, begin : begin + group].contiguous()
        chosen = choose(block, largest_of(block), cut.divisor, cut.scheme)
        on_uniform = cut.scheme.uniform(chosen.last)
        steps = chosen.scales / cut.divisor
        errors = torch.empty_like(block)
        for place in range(group):
            column = begin + place
            rounded = on_grid(block[:, place : place + 1], steps, on_uniform)
            elements[:, column] = rounded[:, 0]
            errors[:, place] = (block[:, place] - rounded[:, 0] * steps) / factor[column, column]
            block[:, place:] -= errors[:, place, None] * factor[column, column : begin + group]
        work[:, begin + group :] -= errors @ factor[begin : begin + group, begin + group :]
        scales.append(chosen.scales)
        uniform.append(on_uniform)
    blocks = elements.view(rows, -1, group)
    return assemble(
        blocks,
        blocks.signbit(),
        torch.stack(scales, 1),
        torch.stack(uniform, 1),
        cut.global_scale,
        shape=weight.shape,
        group=group,
    )


def _inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """Upper Cholesky factor of the damped Hessian's inverse; a column that is never used stands for itself."""
    damped = hessian.double().clone()
    diagonal = damped.diagonal()
    diagonal.add_(damping * diagonal.mean())
    diagonal.masked_fill_(diagonal == 0, 1.0)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    factor: Tensor = torch.linalg.cholesky(inverse, upper=True).to(hessian.dtype)
    return factor
