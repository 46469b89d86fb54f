"""What a batch scheduler sees before an iteration of the engine, and what it decides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import attrs

Kind = Literal["prefill", "decode", "mixed"]


class Waiting(NamedTuple):
    """A request in the queue.

    Args:
        id: Its number, never used twice.
        prompt_tokens: Tokens to prefill.
        arrival: When it came, in seconds.
    """

    id: int
    prompt_tokens: int
    arrival: float


class Finished(NamedTuple):
    """A request that ended since the last observation.

    Args:
        id: Its number.
        output_tokens: Tokens that it generated.
        capped: Whether a limit of tokens ended it, and not the model.
    """

    id: int
    output_tokens: int
    capped: bool = False


@attrs.define
class Observation:
    """The engine's state before one iteration.

    Args:
        time: Seconds by the engine's clock.
        free: Slots that are free.
        waiting: The queue, oldest first.
        running: (id, tokens generated) of each request that decodes; only its length is read in every step.
        pending: Prompt tokens of admitted requests that are still to be prefilled.
        used: Tokens in the cache, those of pending prompts included.
        finished: Requests that ended since the last observation.
    """

    time: float
    free: int
    waiting: Sequence[Waiting] = ()
    running: Collection[tuple[int, int]] = ()
    pending: int = 0
    used: int = 0
    finished: Sequence[Finished] = ()


@attrs.define
class Decision:
    """What the engine does next.

    Args:
        kind: ``prefill`` of admitted prompts, ``decode`` of running requests, or both in one iteration, ``mixed``.
        admit: Ids of waiting requests that get a slot now.
        max_tokens: Most tokens of the iteration.
    """

    kind: Kind
    admit: list[int] = attrs.field(factory=list)
    max_tokens: int = 0
