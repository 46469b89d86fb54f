"""What a run tells its listeners: progress displays, trackers and logs hear these through one hook."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs


@attrs.frozen
class Preparing:
    """Event: something is made once and kept (an input fetched, a model converted or trained)."""

    what: str


@attrs.frozen
class RunStarted:
    """Event: a run of a trainer, a proof or a verb begins."""

    slug: str
    what: str
    config: dict[str, Any] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen
class StepEnded:
    """Event: a step of the current run is done."""

    step: int
    total: int | None = attrs.field(default=None, kw_only=True)
    metrics: dict[str, float] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen
class Saved:
    """Event: a file or folder is completely written."""

    path: str


@attrs.frozen
class RunEnded:
    """Event: the current run is over."""

    slug: str
    what: str
    seconds: float = attrs.field(kw_only=True)


@attrs.frozen
class ClaimChecked:
    """Event: a claim was put to the proof."""

    slug: str
    claim: str
    holds: bool = attrs.field(kw_only=True)


Event: TypeAlias = Preparing | RunStarted | StepEnded | Saved | RunEnded | ClaimChecked
