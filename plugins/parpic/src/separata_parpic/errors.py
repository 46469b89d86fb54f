"""Every error and warning that the plugin raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidGraph(SeparataError, ValueError):
    """An adjacency matrix that no random walk can be made of."""


class InvalidSetting(SeparataError, ValueError):
    """A parameter lies outside what the method is defined for."""


class UnreadableGraph(SeparataError, ValueError):
    """A file is no graph in a format that is read here, or a row of it makes no sense."""


class ZeroMeasure(SeparataError, ValueError):
    """A vertex has no mass under the chosen vertex measure, and no edge brings it any."""


class GraphNotice(UserWarning):
    """Something about a graph that changes what its clusters mean."""
