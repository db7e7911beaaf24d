"""The exceptions of keygroups.

Every error is a `KeyGroupsError`. A bad value is also a `ValueError`, a bad type
also a `TypeError`, so code that catches the built-in ones keeps working. `str()` of an
error is one line: whatever in a name, a key or a path cannot be printed is escaped.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed escaped, as Python's `repr` escapes it.

    That are control characters, which command a terminal, line breaks and tabs among them; marks
    of direction and others without a width, which hide or reorder what stands beside them; spaces
    but the plain one; lone surrogates; and what Unicode does not assign. A backslash stays as it
    is, so a text that was escaped stays as it is too.

    >>> printable("caf\u00e9 \u65e5\u672c")
    'café 日本'
    >>> print(printable("a\x1b[2J\rb\u202ec"))
    a\x1b[2J\rb\u202ec
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def short(text: str, most: int) -> str:
    """Return a printable text, shortened to `most` characters: its start, "..." and its end.

    One long name would else widen all lines of a table.
    """
    text = printable(text)
    end = (most - 3) // 2 - 1
    return text if len(text) <= most else f"{text[: most - 3 - end]}...{text[-end:]}"


__all__ = [
    "AmbiguousKeyTypeError",
    "InvalidTypeError",
    "InvalidValueError",
    "JobError",
    "KeyGroupsError",
    "LeftoverWarning",
    "ParallelismError",
    "ParallelismTypeError",
    "PythonWorkerError",
    "RestoreWarning",
    "SavepointError",
    "UnsupportedKeyTypeError",
]
__dir__ = __all__.copy

_LONGEST = 3_000  # characters of a message; a name from a damaged file may be endless


class KeyGroupsError(Exception):
    """The base class of all errors; `str()` is one printable line of at most 3,000 characters."""

    def __str__(self) -> str:
        return short(super().__str__(), _LONGEST)


class InvalidValueError(KeyGroupsError, ValueError):
    """An argument of the right type outside its bounds."""


class InvalidTypeError(KeyGroupsError, TypeError):
    """An argument of a type that cannot stand there."""


class UnsupportedKeyTypeError(InvalidTypeError):
    """A key whose Java hashCode is an identity, or unknown to keygroups: bytes, an enum."""


class AmbiguousKeyTypeError(InvalidTypeError, InvalidValueError):
    """A key, such as -1, that Java types with different hash codes could hold; declare which."""


class ParallelismError(InvalidValueError):
    """A parallelism or max parallelism outside the bounds that Flink sets."""


class ParallelismTypeError(ParallelismError, InvalidTypeError):
    """A parallelism or max parallelism that is not an int."""


class JobError(KeyGroupsError):
    """A REST API that answers unlike Flink's, or no longer has the job; names the URL."""


class PythonWorkerError(KeyGroupsError):
    """Spark's Python workers have no Python, or another one than the driver."""


class SavepointError(KeyGroupsError, ValueError):
    """A savepoint that is damaged, or has state of an unsupported kind; names file and offset."""


class LeftoverWarning(UserWarning):
    """A folder or file beside a new one, of a writer that was killed or is still at work."""


class RestoreWarning(UserWarning):
    """A restore that Flink accepts, and that may lose keyed state."""
