"""The checks of arguments and keys, and the words in which they refuse them.

Each returns what it checked, or raises with the name of the argument or key type, the value and
the bound.
"""

from __future__ import annotations

import datetime as dt
import operator
import struct
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum
from reprlib import Repr
from typing import Any, ParamSpec, TypeVar

from keygroups._printable import printable
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    ParallelismTypeError,
    UnsupportedKeyTypeError,
)

P = ParamSpec("P")
T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
UPPER_BOUND_MAX_PARALLELISM = 32768
"""The largest max parallelism of a Flink job: 2^15; the last key group is one less."""

MAX_DEPTH = 50
"""How deep key types may nest, which keeps a key within Python's own call stack."""
EPOCH = dt.datetime(1970, 1, 1)
UTC_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
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
    text = printable(" ".join(text.splitlines()))  # a message is one line
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def from_numpy(value: object, scalar: str) -> object:
    """Turn a NumPy scalar of a class into the Python value it equals; leave all else as it is.

    NumPy is not imported for that: without it there are no such scalars.
    """
    cls = getattr(sys.modules.get("numpy"), scalar, None)
    if isinstance(cls, type) and isinstance(value, cls):
        return value.item()  # type: ignore[attr-defined]  # of every NumPy scalar
    return value


def to_int(name: str, value: Any, error: type[InvalidTypeError] = InvalidTypeError) -> int:
    """Return `value` as an int, or raise `error` with `name` and value.

    Whatever has `__index__` is an int (NumPy's integers are), except bools and enums.
    """
    if not isinstance(from_numpy(value, "bool_"), (bool, Enum)):
        try:
            number = operator.index(value)  # its TypeError is the check
        except TypeError:
            pass
        else:
            return int.__index__(number)  # of a subclass too, with methods of its own, an int
    raise error(f"{name} must be an int, got {show(value)} of class {type(value).__name__}")


def to_number(name: str, value: Any) -> float:
    """Return `value` as an int or a float, or raise with `name` and value."""
    number = from_numpy(value, "floating")
    if isinstance(number, float):
        return float.__float__(number)  # of a subclass too, with methods of its own, a float
    try:
        return to_int(name, number)
    except InvalidTypeError:
        raise InvalidTypeError(f"{name} must be a number, got {show(value)}") from None


def check_int(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int of `low..high`, or raise with `name`, value and bounds."""
    number = to_int(name, value)
    if not low <= number <= high:
        raise InvalidValueError(f"{name} must be from {low} to {high}, got {show(number)}")
    return number


def check_str(name: str, value: object, what: str = "a str") -> str:
    """Return a str, a plain one where it is of a subclass, or raise with `name`."""
    if not isinstance(value, str):
        raise InvalidTypeError(
            f"{name} must be {what}, got {show(value)} of class {type(value).__name__}"
        )
    return str.__str__(value)


def check_class(name: str, value: object, cls: type[T], what: str) -> T:
    """Return an instance of a class, which is `what` in words, or raise with `name`."""
    if not isinstance(value, cls):
        raise InvalidTypeError(f"{name} must be {what}, got {show(value)}")
    return value


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


# --- parallelism ------------------------------------------------------------------------


def check_max_parallelism(max_parallelism: int) -> int:
    """Return a max parallelism of 1..32768 as an int, or raise ParallelismError."""
    return check_bounds("max_parallelism", max_parallelism)


def check_parallelism(parallelism: int, max_parallelism: int) -> int:
    """Return a parallelism of 1..max_parallelism as an int, or raise ParallelismError."""
    return check_bounds("parallelism", parallelism, max_parallelism, "max_parallelism")


def check_bounds(
    name: str,
    value: object,
    high: int = UPPER_BOUND_MAX_PARALLELISM,
    bound: str = "Flink's upper bound",
) -> int:
    """Return a parallelism of 1..high as an int, or raise with its name and the bound's."""
    number = to_int(name, value, ParallelismTypeError)
    if not 1 <= number <= high:
        raise ParallelismError(f"{name} must be from 1 to {high} ({bound}), got {show(number)}")
    return number


def check_parallelisms(max_parallelism: int, parallelism: int) -> tuple[int, int]:
    """Return both as ints, 1 <= parallelism <= max_parallelism <= 32768, or raise."""
    groups = check_max_parallelism(max_parallelism)
    return groups, check_parallelism(parallelism, groups)


# --- keys -------------------------------------------------------------------------------


def refused_key(key: object) -> KeyGroupsError:
    """Build the error for a key that no key type takes: what Flink does, and the way out."""
    if key is None:
        return InvalidValueError("key is None: assigned key must not be null")
    cls = type(key).__name__
    way_out = "; compute_key_group_for_key_hash takes a hash of your own"
    if isinstance(key, Enum):
        why = (
            "a Java enum's hashCode is its identity, another one in every JVM: "
            "key the job by its name (STRING)"
        )
    elif isinstance(key, (bytes, bytearray, memoryview)):
        why = "Flink refuses byte[] as a key, because an array's hashCode is its identity"
    elif isinstance(key, (bool, int, float, str, Decimal, dt.date, dt.time, uuid.UUID)):
        why = "a subclass may stand for another Java class: pass key_type"
    elif hasattr(type(key), "__index__") or type(key).__module__ == "numpy":
        why = "it may stand for several Java classes, such as Integer and Long: pass key_type"
    elif isinstance(key, (tuple, list, set, frozenset, dict)):
        why = "it may be a TUPLE, a ROW, a POJO or another class in Flink: pass key_type"
    else:
        why = "the hashCode of its Java class is not known here"
    return UnsupportedKeyTypeError(
        f"key {show(key)} of class {cls} is not supported: {why}{way_out}"
    )


def expect(name: str, key: object, cls: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return the key if it is a `cls`, which is `what` in words; an enum is none."""
    if isinstance(key, cls) and not isinstance(key, Enum):
        return key
    check_not_refused(key)
    raise InvalidTypeError(
        f"key of type {name} must be {what}, got {show(key)} of class {type(key).__name__}"
    )


def expect_bool(name: str, key: object) -> bool:
    """Return the key if it is a bool, Python's or NumPy's."""
    if type(key) is bool:
        return key
    return expect(name, from_numpy(key, "bool_"), bool, "a bool")


def expect_single(name: str, key: object) -> float:
    """Return the key if it is a float, Python's or NumPy's single."""
    if type(key) is float:
        return key
    return expect(name, from_numpy(key, "float32"), float, "a float")


def expect_fields(name: str, arity: int, key: object) -> tuple[object, ...]:
    """Return the key if it is a tuple of as many fields."""
    what = "a tuple of one field, (value,)" if arity == 1 else "a tuple"
    values = expect(name, key, tuple, what)
    if len(values) != arity:
        raise InvalidValueError(
            f"key of type {name} must have {arity} fields, got {len(values)}: {show(key)}"
        )
    return values


def each(
    what: str, functions: Iterable[Callable[[Any], T]], values: Iterable[object]
) -> Iterator[T]:
    """Yield each function of its value, and say in an error which value it was."""
    for index, (function, value) in enumerate(zip(functions, values)):
        try:
            yield function(value)
        except KeyGroupsError as error:
            raise type(error)(f"{what} {index}: {error}") from None


def integer_checker(name: str, bits: int) -> Callable[[object], int]:
    """Make what checks a Java integer and returns it; up to 32 bits it is its own hash."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def check_integer(key: object) -> int:
        if type(key) is int and low <= key <= high:
            return key
        return check_int(f"key of type {name}", check_not_refused(key), low, high)

    return check_integer


def pack_single(name: str, number: float) -> bytes:
    """Return the four bytes of a number that is exactly a single, a NaN's payload included."""
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        packed = b""
    if not packed or struct.pack("<d", *struct.unpack("<f", packed)) != struct.pack("<d", number):
        raise InvalidValueError(
            f"key of type {name} must be a single-precision number, got {show(number)}: round it "
            "first, for instance with struct.unpack('f', struct.pack('f', key))[0]"
        )
    return packed


def check_not_refused(key: object) -> object:
    if key is None or isinstance(key, Enum):
        raise refused_key(key)
    return key


def _datetime(name: str, key: object, what: str) -> dt.datetime:
    value = expect(name, key, dt.datetime, what)
    # pandas' Timestamp and NaT are datetimes too: a nanosecond would be lost, NaT is null.
    nanosecond: int = getattr(value, "nanosecond", 0)
    if value != value or nanosecond:
        raise InvalidValueError(f"key of type {name} must be whole microseconds, got {show(key)}")
    return value


def instant_since_epoch(name: str, key: object) -> dt.timedelta:
    """Return how far an aware datetime is from the epoch."""
    value = _datetime(name, key, "an aware datetime")
    if value.utcoffset() is None:
        raise InvalidTypeError(
            f"key of type {name} must be an aware datetime, got {show(key)} without a zone"
        )
    return value - UTC_EPOCH


def local_since_epoch(name: str, key: object) -> dt.timedelta:
    """Return how far a naive datetime is from the epoch, as if it were in UTC."""
    return check_naive(name, key) - EPOCH


def check_naive(name: str, key: object) -> dt.datetime:
    value = _datetime(name, key, "a naive datetime")
    if value.tzinfo is not None:
        raise InvalidTypeError(
            f"key of type {name} must be a naive datetime, got {show(key)} with a zone"
        )
    return value


def check_date(name: str, key: object) -> dt.date:
    """Return a key that is a date and no datetime."""
    value = expect(name, key, dt.date, "a date")
    if isinstance(value, dt.datetime):
        raise InvalidTypeError(f"key of type {name} must be a date, got the datetime {show(key)}")
    return value


def check_time(name: str, key: object) -> dt.time:
    """Return a key that is a time without a zone."""
    value = expect(name, key, dt.time, "a time")
    if value.tzinfo is not None:
        raise InvalidTypeError(
            f"key of type {name} must be a time without a zone, got {show(key)}"
        )
    return value
