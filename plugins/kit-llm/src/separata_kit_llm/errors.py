"""Every error that the kit raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class SourceNotFound(SeparataError, ValueError):
    """A model, text or task file is named that is not there."""


class HubUnavailable(SourceNotFound):
    """A hub id can't be resolved: no connection and nothing cached, or the hub does not know it."""


class NotACausalDecoder(SeparataError, ValueError):
    """The model is no decoder that predicts the next token."""


class NoSafetensors(SeparataError, ValueError):
    """The weights are there only in a form that can run code when it is read, or not at all."""


class UnreadableModel(SeparataError, ValueError):
    """The files are a model's, but transformers can't make one of them."""


class InvalidOption(SeparataError, ValueError):
    """An option lies outside what it may be."""


class InvalidPatch(SeparataError, ValueError):
    """A patch names what the model does not have, or two patches are in each other's way."""


class TextTooShort(SeparataError, ValueError):
    """A text holds fewer tokens than were asked for."""


class UnreadableText(SeparataError, ValueError):
    """A text or task file can't be decoded, or lacks the field asked for."""
