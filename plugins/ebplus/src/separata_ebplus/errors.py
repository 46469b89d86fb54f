"""Every error and warning that the plugin raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidSetting(SeparataError, ValueError):
    """A number lies outside what the method is defined for."""


class InvalidProfile(SeparataError, ValueError):
    """A profile of step times lacks a phase, or its rows can't be read."""


class InvalidLengths(SeparataError, ValueError):
    """Output lengths from which no hazard can be estimated."""


class InvalidTrace(SeparataError, ValueError):
    """A trace lacks a column or holds a value that makes no sense."""


class CapacityTooSmall(SeparataError, ValueError):
    """A request does not fit into the cache even alone."""


class InvalidObservation(SeparataError, ValueError):
    """An observation contradicts what the scheduler has seen before."""


class InvalidDecision(SeparataError, ValueError):
    """A scheduler decides what an engine can't do."""


class PoorFit(UserWarning):
    """Step times are not linear in tokens: what is derived from the line is not to be trusted."""


class AllCensored(UserWarning):
    """No request was seen to finish on its own: the hazard is a bound from priors."""
