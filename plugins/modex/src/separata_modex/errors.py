"""Every error and warning that the plugin raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidLabels(SeparataError, ValueError):
    """Labels that are no single class a row, or classes that the model has not seen."""


class InvalidSetting(SeparataError, ValueError):
    """A parameter lies outside what the method is defined for."""


class UnstableHead(SeparataError, ArithmeticError):
    """A head's output is not finite."""


class AbsentClass(UserWarning):
    """A class that was declared has no row to learn from."""


class UnreadableTable(SeparataError, ValueError):
    """A file is no table with the columns that are needed."""
