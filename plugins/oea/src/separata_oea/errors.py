"""Every error that the plugin raises on purpose, and its one warning."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidSetting(SeparataError, ValueError):
    """A number of experts, or another setting, lies outside what it may be."""


class InvalidScores(SeparataError, ValueError):
    """Router scores can't be ranked, or don't have the shape that goes with them."""


class NoRouter(SeparataError, ValueError):
    """The model has no router of a mixture of experts that is known."""


class RouterMismatch(SeparataError, ValueError):
    """A router chooses other experts than the scoring it is registered with."""


class TooFewSamples(SeparataError, ValueError):
    """There are fewer samples than an estimate needs."""


class PromptMissing(SeparataError, ValueError):
    """There is nothing to generate from."""


class PaddingUnmasked(UserWarning):
    """A batch holds padding that no attention mask tells from tokens."""
