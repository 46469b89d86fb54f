"""What a compressed cache refuses to take."""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import GradientsRequired, LeftPadded, NonFiniteStates

REPEATED = 1e-4  # relative difference of values that stem from one token; rounding stays far below it


def refuse_gradients(layer: int, *states: Tensor) -> None:
    """Raise if the states of a layer carry gradients.

    Raises:
        GradientsRequired: Factors are no function of the model's weights that training could follow.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in states):
        raise GradientsRequired(
            f"the states of layer {layer} carry gradients",
            "run the model under torch.no_grad()",
        )


def refuse_nonfinite(layer: int, keys: Tensor, values: Tensor) -> None:
    """Raise if a layer's states hold NaN or infinity.

    Raises:
        NonFiniteStates: One bad number would spoil every layer of the group.
    """
    for name, states in (("keys", keys), ("values", values)):
        if not bool(torch.isfinite(states).all()):
            raise NonFiniteStates(
                f"the {name} of layer {layer} hold NaN or infinity",
                "check the model's weights and dtype: half precision overflows in some models",
            )


def refuse_unmasked_padding(values: Tensor) -> None:
    """Raise if some prompts of a batch, but not all, begin with a repeated token.

    The values of the first layer depend on the token alone, so that padding shows even though a cache sees no
    tokens. The longest prompt of a padded batch has none, so that padding is never in all rows.

    Args:
        values: A ``batch x heads x length x head_dim`` tensor, the values of the model's first layer.

    Raises:
        LeftPadded: The positions of such a batch are unknown.
    """
    if values.shape[0] < 2 or values.shape[2] < 2:
        return
    first, second = values[:, :, 0].flatten(1).float(), values[:, :, 1].flatten(1).float()
    repeated = (first - second).norm(dim=-1) <= REPEATED * first.norm(dim=-1)
    if bool(repeated.any()) and not bool(repeated.all()):
        rows = ", ".join(map(str, repeated.nonzero().flatten().tolist()))
        raise LeftPadded(
            f"batch row {rows} begins with a repeated token, as if padded on the left, and nothing masks it",
            "pass the attention_mask, or set trust_positions if the prompt really begins so",
        )
