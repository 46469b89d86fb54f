"""Bad states are refused before they spoil a group."""

from __future__ import annotations

import pytest
import torch

from separata_xkv.checks import refuse_gradients, refuse_nonfinite, refuse_unmasked_padding
from separata_xkv.errors import GradientsRequired, LeftPadded, NonFiniteStates


def test_gradients_are_refused_where_they_are_recorded() -> None:
    states = torch.zeros(1, requires_grad=True)
    with pytest.raises(GradientsRequired, match="layer 3"):
        refuse_gradients(3, torch.zeros(1), states)
    with torch.no_grad():
        refuse_gradients(3, states)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_name_side_and_layer(bad: float) -> None:
    good, spoilt = torch.zeros(2, 3), torch.tensor([0.0, bad])
    with pytest.raises(NonFiniteStates, match="keys of layer 7"):
        refuse_nonfinite(7, spoilt, good)
    with pytest.raises(NonFiniteStates, match="values of layer 7"):
        refuse_nonfinite(7, good, spoilt)
    refuse_nonfinite(7, good, good)


def test_one_row_that_begins_with_a_repeated_token_is_padding(generator: torch.Generator) -> None:
    values = torch.randn(3, 2, 5, 4, generator=generator)
    refuse_unmasked_padding(values)
    values[1, :, 1] = values[1, :, 0]
    with pytest.raises(LeftPadded, match="row 1 begins with a repeated token"):
        refuse_unmasked_padding(values)


def test_prompts_that_all_begin_so_or_stand_alone_are_not_padded(generator: torch.Generator) -> None:
    values = torch.randn(3, 2, 5, 4, generator=generator)
    values[:, :, 1] = values[:, :, 0]
    refuse_unmasked_padding(values)
    refuse_unmasked_padding(values[:1])
