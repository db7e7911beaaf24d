"""The exceptions of keygroups, and the checks that raise them for integers.

Every exception is a `KeyGroupsError`. A bad value is also a `ValueError`, a bad type
also a `TypeError`, so code that catches the built-in ones keeps working.
"""

from __future__ import annotations

import operator
from enum import Enum

__all__ = [
    "AmbiguousKeyTypeError",
    "InvalidTypeError",
    "InvalidValueError",
    "KeyGroupsError",
    "ParallelismError",
    "ParallelismTypeError",
    "UnsupportedKeyTypeError",
    "check_int",
    "show",
    "to_int",
]


class KeyGroupsError(Exception):
    """Whatever keygroups refuses."""


class InvalidValueError(KeyGroupsError, ValueError):
    """An argument of the right type outside its bounds."""


class InvalidTypeError(KeyGroupsError, TypeError):
    """An argument of a type that cannot stand there."""


class UnsupportedKeyTypeError(InvalidTypeError):
    """A key whose Java hashCode is an identity, or is not known here."""


class AmbiguousKeyTypeError(InvalidTypeError, InvalidValueError):
    """A key that Java types with different hash codes could hold; declare its key type."""


class ParallelismError(InvalidValueError):
    """A parallelism or max parallelism outside the bounds that Flink sets."""


class ParallelismTypeError(ParallelismError, InvalidTypeError):
    """A parallelism or max parallelism that is not an int."""


def show(value: object) -> str:
    """Return the repr of a value, short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no int of more than 4300 digits
        return f"{type(value).__name__} too long to print"
    return text if len(text) <= 120 else f"{text[:117]}..."


def to_int(name: str, value: object, error: type[InvalidTypeError] = InvalidTypeError) -> int:
    """Return `value` as an int, or raise `error` with `name` and value.

    Whatever has `__index__` is an int (NumPy's integers are), except bools and enums.
    """
    if not isinstance(value, (bool, Enum)):
        try:
            return operator.index(value)  # type: ignore[arg-type]  # its TypeError is the check
        except TypeError:
            pass
    raise error(f"{name} must be an int, got {show(value)} of class {type(value).__name__}")


def check_int(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int of `low..high`, or raise with `name`, value and bounds."""
    number = to_int(name, value)
    if not low <= number <= high:
        raise InvalidValueError(f"{name} must be from {low} to {high}, got {show(number)}")
    return number
