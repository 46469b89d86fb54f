"""Every error that a user can see: what was given, and what to do about it."""

from __future__ import annotations


class SeparataError(Exception):
    """The base of all errors that separata and its plugins raise on purpose.

    Args:
        problem: One line that says what was given or what happened.
        remedy: One line that says what is accepted or what to do next.
    """

    exit_code = 2

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}\n{self.remedy}"


class InvalidRecord(SeparataError, ValueError):
    """A plugin declares something that can't be: a wrong kind, a bad name, a string that is no import path."""


class UnknownName(SeparataError, LookupError):
    """Nothing is installed or catalogued under this name."""


class InvalidConfig(SeparataError, ValueError):
    """A setting is unknown, of the wrong type or out of its range."""


class PackageMissing(SeparataError, ImportError):
    """Something optional is not installed."""

    @classmethod
    def extra(cls, package: str, wanted: str) -> PackageMissing:
        """The error for a package that an extra brings, such as ``separata-xkv[plot]``."""
        return cls(f"{package} is not installed", f"python -m pip install '{wanted}'")


class PluginError(SeparataError):
    """A plugin can't be used; the other plugins can."""

    exit_code = 3


class BrokenPlugin(PluginError):
    """A plugin fails to import, or declares what does not exist."""


class IncompatiblePlugin(PluginError):
    """A plugin asks for another version of the core."""


class BlockedPlugin(PluginError):
    """A plugin is installed, but the allow-list leaves it out."""


class ConflictingPlugins(PluginError):
    """Two distributions claim one slug, or one claims a slug reserved for another."""


class CatalogueUnreadable(SeparataError):
    """The copy of the extension registry that ships with the core is damaged."""


class InputUnavailable(SeparataError):
    """A named input can't be fetched, or what was fetched is not what its record names."""


class HashMismatch(InputUnavailable):
    """What was fetched differs, byte for byte, from what the record names."""


class ArtifactError(SeparataError):
    """A saved folder is missing, unreadable, newer than this version, or holds something else."""


class WriteFailed(SeparataError):
    """A file or folder could not be written; nothing half-written was left."""


class PlacementError(SeparataError):
    """The work can't be placed as asked on this machine."""
