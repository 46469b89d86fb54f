"""Every error and warning that xKV raises on purpose."""

from __future__ import annotations

from separata.errors import SeparataError


class InvalidSetting(SeparataError, ValueError):
    """A setting lies outside what the method is defined for."""


class UnsupportedModel(SeparataError, ValueError):
    """The model keeps its keys and values in a form that can't be compressed across layers."""


class UnsupportedRotation(UnsupportedModel):
    """The model's rotary embedding can't be found, or can't be undone by its own function."""


class LeftPadded(SeparataError, ValueError):
    """A batch is padded on the left, and nothing says where its prompts begin."""


class GradientsRequired(SeparataError, RuntimeError):
    """Keys or values carry gradients: the cache is for inference."""


class NonFiniteStates(SeparataError, ValueError):
    """A layer's keys or values hold NaN or infinity."""


class AttentionNotSet(SeparataError, RuntimeError):
    """The cache defers its reconstruction to an attention function that the model does not use."""


class CacheMismatch(SeparataError, ValueError):
    """A cache was made for another model, or holds layers that can't be taken over."""


class PromptMissing(SeparataError, ValueError):
    """There is nothing to generate from."""


class RankClamped(UserWarning):
    """An explicit rank is larger than the states allow; the factorisation is exact at the lower rank."""
