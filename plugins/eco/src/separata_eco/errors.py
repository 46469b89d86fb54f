"""Every error that ECO raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidSetting(SeparataError, ValueError):
    """A setting lies outside what it may be."""


class NotSupported(SeparataError, NotImplementedError):
    """A variant of an optimizer that errors can't be carried in."""


class ShapeMismatch(SeparataError, ValueError):
    """A weight's rows can't be divided into the groups of a quantiser."""


class SharedWeight(SeparataError, ValueError):
    """A weight that would be quantised also belongs to a module that needs it as it is."""


class NothingToQuantise(SeparataError, ValueError):
    """A model has no weight that would be quantised."""


class SparseGradient(SeparataError, ValueError):
    """A gradient is sparse."""


class BadCheckpoint(SeparataError, ValueError):
    """A saved folder does not belong to this model."""
