"""Every error and warning that the plugin raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidLog(SeparataError, ValueError):
    """A log that can't be read, or whose columns make no experiment."""


class InvalidSetting(SeparataError, ValueError):
    """A parameter lies outside what the method is defined for."""


class AssignmentMismatch(SeparataError, ValueError):
    """The arms in the log were not drawn as the given probability and blocks say."""


class InvalidProcess(SeparataError, ValueError):
    """Arrays that are no Markov decision process."""


class TPGNotice(UserWarning):
    """Something about a log or a setting that changes what the estimate means."""
