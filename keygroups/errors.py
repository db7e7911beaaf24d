"""The exceptions of keygroups.

Every error is a `KeyGroupsError`. A bad value is also a `ValueError`, a bad type
also a `TypeError`, so code that catches the built-in ones keeps working. `str()` of an
error is one line: whatever in a name, a key or a path cannot be printed is escaped.
"""

from __future__ import annotations

from keygroups._printable import short

__all__ = [
    "AmbiguousKeyTypeError",
    "InvalidTypeError",
    "InvalidValueError",
    "JobError",
    "KeyGroupsError",
    "LeftoverWarning",
    "ParallelismError",
    "ParallelismTypeError",
    "RestoreWarning",
    "SavepointError",
    "UnsupportedKeyTypeError",
]
__dir__ = __all__.copy

_LONGEST = 3_000  # characters of a message, which may have names from a file in it


class KeyGroupsError(Exception):
    """Whatever keygroups refuses; `str()` is one line that can be printed, of some length."""

    def __str__(self) -> str:
        return short(super().__str__(), _LONGEST)


class InvalidValueError(KeyGroupsError, ValueError):
    """An argument of the right type outside its bounds."""


class InvalidTypeError(KeyGroupsError, TypeError):
    """An argument of a type that cannot stand there."""


class UnsupportedKeyTypeError(InvalidTypeError):
    """A key whose Java hashCode is an identity, or is not known here: bytes, an enum."""


class AmbiguousKeyTypeError(InvalidTypeError, InvalidValueError):
    """A key, such as -1, that Java types with different hash codes could hold; declare which."""


class ParallelismError(InvalidValueError):
    """A parallelism or max parallelism outside the bounds that Flink sets."""


class ParallelismTypeError(ParallelismError, InvalidTypeError):
    """A parallelism or max parallelism that is not an int."""


class JobError(KeyGroupsError):
    """A REST API that does not answer as Flink does, or no longer of that job; names the URL."""


class SavepointError(KeyGroupsError, ValueError):
    """A savepoint that is damaged, or that holds what is not read here; names file and offset."""


class LeftoverWarning(UserWarning):
    """A folder beside a new savepoint, of a writer that was killed or is still at work."""


class RestoreWarning(UserWarning):
    """A restore that Flink accepts, and that may lose keyed state."""
