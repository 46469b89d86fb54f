"""Every error that MixFP4 raises on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from separata.errors import SeparataError

if TYPE_CHECKING:
    from torch import Tensor


class InvalidSetting(SeparataError, ValueError):
    """A setting lies outside what it may be."""


class NonFinite(SeparataError, ValueError):
    """A tensor holds NaN or infinity, or numbers beyond float32."""

    @classmethod
    def found(cls, x: Tensor, remedy: str) -> Self:
        """The error for a tensor, with how many there are and where the first one is."""
        bad = x.isfinite().logical_not_().nonzero()
        first = tuple(bad[0].tolist()) if len(bad) else ()
        return cls(f"{len(bad)} of {x.numel()} numbers are NaN or infinite, the first at {first}", remedy)


class GroupMismatch(SeparataError, ValueError):
    """The last dimension of a tensor can't be divided into groups."""


class BadCodes(SeparataError, ValueError):
    """Codes, scales and shape do not belong together."""


class NothingToQuantise(SeparataError, ValueError):
    """A model or a file holds nothing that can be quantised."""


class UnreadableFile(SeparataError, ValueError):
    """A file holds no tensors, or ones that don't belong together."""


class AmbiguousScale(SeparataError, ValueError):
    """A file claims to be NVFP4 and has negative scales, which only mean something in MixFP4."""
