"""The exceptions of keygroups, and the checks that raise them for integers.

Every exception is a `KeyGroupsError`. A bad value is also a `ValueError`, a bad type
also a `TypeError`, so code that catches the built-in ones keeps working.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from reprlib import Repr
from typing import ParamSpec, TypeVar

__all__ = [
    "AmbiguousKeyTypeError",
    "InvalidTypeError",
    "InvalidValueError",
    "KeyGroupsError",
    "ParallelismError",
    "ParallelismTypeError",
    "UnsupportedKeyTypeError",
]


P = ParamSpec("P")
T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)


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


_LONGEST = 120  # characters of a value in a message

# Shows no more of a value than a message has room for, however deep or long it is.
_short = Repr()
_short.maxlevel = 5
_short.maxtuple = _short.maxlist = _short.maxset = _short.maxfrozenset = _short.maxdict = 10
_short.maxstring = _short.maxother = _LONGEST


def show(value: object) -> str:
    """Return the repr of a value, short enough for a message; raises nothing."""
    cls = type(value).__name__
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST:
        return f"{cls} too long to print"  # as Python itself finds beyond 4300 digits
    try:
        text = _short.repr(value)
    except Exception:  # whatever the value's own class does there
        return f"{cls} that cannot be printed"
    text = " ".join(text.splitlines())  # a message is one line
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def from_numpy(value: object, scalar: str) -> object:
    """Turn a NumPy scalar of a class into the Python value it equals; leave all else as it is.

    NumPy is not imported for that: without it there are no such scalars.
    """
    cls = getattr(sys.modules.get("numpy"), scalar, None)
    if isinstance(cls, type) and isinstance(value, cls):
        return value.item()  # type: ignore[attr-defined]  # of every NumPy scalar
    return value


def to_int(name: str, value: object, error: type[InvalidTypeError] = InvalidTypeError) -> int:
    """Return `value` as an int, or raise `error` with `name` and value.

    Whatever has `__index__` is an int (NumPy's integers are), except bools and enums.
    """
    if not isinstance(from_numpy(value, "bool_"), (bool, Enum)):
        try:
            number = operator.index(value)  # type: ignore[arg-type]  # its TypeError is the check
        except TypeError:
            pass
        else:
            return int.__index__(number)  # of a subclass too, with methods of its own, an int
    raise error(f"{name} must be an int, got {show(value)} of class {type(value).__name__}")


def check_int(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int of `low..high`, or raise with `name`, value and bounds."""
    number = to_int(name, value)
    if not low <= number <= high:
        raise InvalidValueError(f"{name} must be from {low} to {high}, got {show(number)}")
    return number


def iterate(name: str, what: str, values: Iterable[T]) -> Iterator[T]:
    """Return an iterator over some values, which text never is, or raise with `name`."""
    if not isinstance(values, (str, bytes)):
        try:
            return iter(values)
        except TypeError:  # an array without a dimension has __iter__ and no elements
            pass
    raise InvalidTypeError(f"{name} must be an iterable of {what}, got {show(values)}")


def check_callable(name: str, value: Callable[P, T]) -> Callable[P, T]:
    """Return what can be called, or raise with `name`."""
    if not callable(value):
        raise InvalidTypeError(f"{name} must be callable, got {show(value)}")
    return value


def check_choice(name: str, value: object, choices: Sequence[Choice]) -> Choice:
    """Return a str that is one of some, or raise with `name` and all of them."""
    # Only a str is compared: what is none may have an equality of its own.
    if not isinstance(value, str) or value not in choices:
        raise InvalidValueError(f"{name} must be one of {', '.join(choices)}, got {show(value)}")
    return choices[choices.index(value)]
