"""Compressed states show their shape and refuse everything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from separata_xkv.deferred import Deferred
from separata_xkv.errors import AttentionNotSet


@pytest.fixture
def states() -> Deferred:
    layer: Any = SimpleNamespace(index=3)
    return Deferred.of(torch.zeros(2, 4, 1, 8, dtype=torch.bfloat16), 100, layer, None)


def test_it_looks_like_the_states_it_stands_for(states: Deferred) -> None:
    assert states.shape == (2, 4, 100, 8)
    assert states.size(2) == 100
    assert states.dtype == torch.bfloat16
    assert states.device.type == "cpu"
    assert repr(states) == "Deferred(shape=(2, 4, 100, 8), layer=3)"


def test_it_takes_no_memory_of_its_own(states: Deferred) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        assert states.untyped_storage().nbytes() <= 2


@pytest.mark.parametrize(
    "use",
    [
        lambda states: states @ states.mT,
        lambda states: states + 1,
        lambda states: torch.cat([states, states]),
        lambda states: states[:, :, 0],
        lambda states: states.float(),
        lambda states: torch.nn.functional.scaled_dot_product_attention(states, states, states),
    ],
)
def test_any_operation_on_it_is_refused(states: Deferred, use: Any) -> None:
    with pytest.raises(AttentionNotSet, match="attention_of"):
        use(states)
