"""Every error and warning that the plugin raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidProcess(SeparataError, ValueError):
    """Arrays, a file or an environment that is no Markov decision process this plugin can read."""


class InvalidSetting(SeparataError, ValueError):
    """A parameter lies outside what the method is defined for."""


class InvalidObservation(SeparataError, ValueError):
    """What a schedule was shown makes no sense after what it has seen."""


class TUFNotice(UserWarning):
    """Something about a process or an agent that changes what a result means."""
