from __future__ import annotations

from typing import Any

import pytest

from separata_oea import OEAConfig


@pytest.mark.parametrize(
    "settings",
    [
        {"k0": 0},
        {"p": 0.0},
        {"p": 1.1},
        {"k_max": 0},
        {"max_rank": 0},
        {"renorm": "two"},
        {"positions": 0},
        {"target": 0.0},
        {"target_seconds": -1.0},
        {"expert_parallel": "none"},
        {"shards": 0},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        OEAConfig(**settings)
