"""Checks that a Python value can stand for a Java one, and the messages that refuse it."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from keygroups._checks import check_int, from_numpy, show
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)

T = TypeVar("T")

EPOCH = dt.datetime(1970, 1, 1)
UTC_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


BYTES = (
    "Flink refuses byte[] as a key, because an array's hashCode is its identity; a ByteBuffer, by "
    "which Beam keys, is key_type=BYTE_BUFFER"
)
"""The reason for which bytes without a key type are refused."""


def refused_key(key: object) -> KeyGroupsError:
    """Return the error for a key that no key type takes, with Flink's reason and the way out."""
    if key is None:
        return InvalidValueError("key is None: assigned key must not be null")
    cls = type(key).__name__
    way_out = (
        "; compute_key_group_for_key_hash takes a hash of your own, and so does key_type=HASHED"
    )
    if isinstance(key, Enum):
        why = (
            "a Java enum's hashCode is its identity, another one in every JVM: "
            "key the job by its name (STRING)"
        )
    elif hasattr(type(key), "DESCRIPTOR"):
        why = "a protobuf message's hashCode is another one in every JVM: key the job by a field"
    elif isinstance(key, (bytes, bytearray, memoryview)):
        why = BYTES
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


def expect(name: str, key: object, cls: type[T] | tuple[type[T], ...], description: str) -> T:
    """Return the key if it is a `cls`, which is `description` in words; an enum is none."""
    if isinstance(key, cls) and not isinstance(key, Enum):
        return key
    check_not_refused(key)
    raise InvalidTypeError(
        f"key of type {name} must be {description}, got {show(key)} of class {type(key).__name__}"
    )


def check_variant_version(metadata: bytes) -> None:
    """Raise InvalidValueError for the metadata of a Variant that Flink cannot read.

    Flink: BinaryVariantUtil.VERSION, which is the lower half of the first byte.
    """
    if not metadata or metadata[0] & 0x0F != 1:
        raise InvalidValueError(
            "metadata of a Variant must be of version 1, the lower half of its first byte, got "
            f"{show(metadata)}"
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
    """Return the key if it is a tuple of `arity` fields."""
    description = "a tuple of one field, (value,)" if arity == 1 else "a tuple"
    values = expect(name, key, tuple, description)
    if len(values) != arity:
        raise InvalidValueError(
            f"key of type {name} must have {arity} fields, got {len(values)}: {show(key)}"
        )
    return values


def elements_of(name: str, value: object) -> Collection[Any]:
    """Return the elements of a Set: a set, or a list where Python cannot hold them in one."""
    return expect(name, value, (set, frozenset, list), "a set, or a list of its elements")


def items_of(name: str, value: object) -> Collection[tuple[Any, Any]]:
    """Return keys and values of a Map: a dict, or pairs where Python cannot hold them in one."""
    mapping = expect(name, value, (dict, list), "a dict, or a list of pairs")
    if isinstance(mapping, dict):
        return mapping.items()
    for item in mapping:
        if not isinstance(item, tuple) or len(item) != 2:
            raise InvalidTypeError(
                f"key of type {name} must be a dict, or a list of pairs, got {show(item)} in it"
            )
    return mapping


def each(
    place: str, functions: Iterable[Callable[[Any], T]], values: Iterable[object]
) -> Iterator[T]:
    """Yield each function of its value; an error gets `place` and the index of the value."""
    for index, (function, value) in enumerate(zip(functions, values)):
        try:
            yield function(value)
        except KeyGroupsError as error:
            raise type(error)(f"{place} {index}: {error}") from None


def integer_checker(name: str, bits: int) -> Callable[[object], int]:
    """Return the function that checks a Java integer; with up to 32 bits it is its own hash."""
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


def _datetime(name: str, key: object, description: str) -> dt.datetime:
    value = expect(name, key, dt.datetime, description)
    # pandas' Timestamp and NaT are datetimes too: a nanosecond would be lost, NaT is null.
    nanosecond: int = getattr(value, "nanosecond", 0)
    if value != value or nanosecond:
        raise InvalidValueError(f"key of type {name} must be whole microseconds, got {show(key)}")
    return value


def instant_since_epoch(name: str, key: object) -> dt.timedelta:
    """Return the time from the epoch to an aware datetime."""
    value = _datetime(name, key, "an aware datetime")
    if value.utcoffset() is None:
        raise InvalidTypeError(
            f"key of type {name} must be an aware datetime, got {show(key)} without a zone"
        )
    return value - UTC_EPOCH


def local_since_epoch(name: str, key: object) -> dt.timedelta:
    """Return the time from the epoch to a naive datetime, as if it were in UTC."""
    return check_naive(name, key) - EPOCH


def check_naive(name: str, key: object) -> dt.datetime:
    value = _datetime(name, key, "a naive datetime")
    if value.tzinfo is not None:
        raise InvalidTypeError(
            f"key of type {name} must be a naive datetime, got {show(key)} with a zone"
        )
    return value


def check_date(name: str, key: object) -> dt.date:
    """Return the key if it is a date and no datetime."""
    value = expect(name, key, dt.date, "a date")
    if isinstance(value, dt.datetime):
        raise InvalidTypeError(f"key of type {name} must be a date, got the datetime {show(key)}")
    return value


def check_time(name: str, key: object) -> dt.time:
    """Return the key if it is a time without a zone."""
    value = expect(name, key, dt.time, "a time")
    if value.tzinfo is not None:
        raise InvalidTypeError(
            f"key of type {name} must be a time without a zone, got {show(key)}"
        )
    return value
