"""Decodes Java's values as `tests/vectors/independent` writes them."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import keygroups
from keygroups import types
from keygroups.savepoint.values import Instant, LocalDate, LocalDateTime, LocalTime
from support.inside.values import instant_code

Typed = tuple[types.KeyType, Any]


class NoKeyTypeError(Exception):
    """A Java class without a key type: Scala's, arrays, BinaryStringData, ..."""


class BeyondPythonError(Exception):
    """A value that Python's own class cannot hold: nanoseconds, years past 9999."""


INTEGERS = {
    "Integer": types.INT,
    "Short": types.SHORT,
    "Byte": types.BYTE,
    "Long": types.LONG,
    "BigInteger": types.BIG_INT,
    # The mutable types of org.apache.flink.types hash as what they wrap, but for three
    # (see WRAPPERS).
    "IntValue": types.INT,
    "ShortValue": types.SHORT,
    "ByteValue": types.BYTE,
}
# LongValue, DoubleValue: what their hashCode adds to the wrapped one's (RULES.md).
WRAPPERS = {"LongValue": ("Long", 43), "DoubleValue": ("Double", 31)}


def from_bits(value: dict[str, str], code: str) -> float:
    number: float = struct.unpack(f">{code}", bytes.fromhex(value["bits"][2:]))[0]
    return number


def to_date(value: dict[str, int]) -> dt.date:
    if not 1 <= value["year"] <= 9999:
        raise BeyondPythonError
    return dt.date(value["year"], value["month"], value["day"])


def to_time(value: dict[str, int]) -> dt.time:
    if value["nano"] % 1000:
        raise BeyondPythonError
    return dt.time(value["hour"], value["minute"], value["second"], value["nano"] // 1000)


def to_datetime(millis: int, nanos_of_milli: int = 0) -> dt.datetime:
    """Return a UTC wall-clock time, if java.util's Gregorian calendar has it."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=millis)
    except OverflowError:
        raise BeyondPythonError from None
    if moment < dt.datetime(1582, 10, 15) or nanos_of_milli % 1000:
        raise BeyondPythonError
    return moment + dt.timedelta(microseconds=nanos_of_milli // 1000)


def to_instant(value: dict[str, Any]) -> dt.datetime:
    if value["nanos"] % 1000:
        raise BeyondPythonError
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
            seconds=int(value["seconds"]), microseconds=value["nanos"] // 1000
        )
    except OverflowError:
        raise BeyondPythonError from None


def to_sql_date(value: dict[str, str]) -> dt.date:
    moment = to_datetime(int(value["millis"]))
    if moment.time() != dt.time():
        raise BeyondPythonError  # a java.sql.Date that is not at midnight
    return moment.date()


def to_sql_time(value: dict[str, str]) -> dt.time:
    moment = to_datetime(int(value["millis"]))
    if moment.date() != dt.date(1970, 1, 1):
        raise BeyondPythonError  # a java.sql.Time of another day
    return moment.time()


SCALARS: dict[str, tuple[types.KeyType, Callable[[Any], object]]] = {
    "null": (types.NULL, lambda _: None),
    "Boolean": (types.BOOLEAN, bool),
    "Character": (types.CHAR, chr),
    "CharValue": (types.CHAR, chr),
    "Double": (types.DOUBLE, lambda v: from_bits(v, "d")),
    "Float": (types.FLOAT, lambda v: from_bits(v, "f")),
    "FloatValue": (types.FLOAT, lambda v: from_bits(v, "f")),
    "String": (types.STRING, str),
    "StringValue": (types.STRING, str),
    "BigDecimal": (types.BIG_DEC, lambda v: Decimal(f"{v['unscaled']}E{-v['scale']}")),
    "LocalDate": (types.LOCAL_DATE, to_date),
    "LocalTime": (types.LOCAL_TIME, to_time),
    "LocalDateTime": (
        types.LOCAL_DATE_TIME,
        lambda v: dt.datetime.combine(to_date(v["date"]), to_time(v["time"])),
    ),
    "Instant": (types.INSTANT, to_instant),
    "UUID": (types.UUID, uuid.UUID),
    "java.sql.Date": (types.SQL_DATE("UTC"), to_sql_date),
    "java.sql.Time": (types.SQL_TIME("UTC"), to_sql_time),
    "java.sql.Timestamp": (
        types.SQL_TIMESTAMP("UTC"),
        lambda v: to_datetime(int(v["millis"]), v["nanos"] % 1_000_000),
    ),
}


def decode(java_type: str, value: Any) -> Typed:
    if java_type in INTEGERS:
        return INTEGERS[java_type], int(value)
    if java_type in SCALARS:
        key_type, convert = SCALARS[java_type]
        return key_type, convert(value)
    if java_type.startswith("Tuple"):
        fields = decode_all(value)
        return types.TUPLE(*(t for t, _ in fields)), tuple(v for _, v in fields)
    if java_type == "Row":
        return decode_row(value)
    if java_type in ("EitherLeft", "EitherRight"):
        return decode_part(value["t"], value["v"])  # Either hashes as the value in it
    if java_type in ("List", "Set"):
        element, values = decode_common(value)
        return (
            (types.LIST(element), values)
            if java_type == "List"
            else (types.SET(element), frozenset(values))
        )
    if java_type == "Optional":
        key_type, key = (
            (types.NULL, None) if value is None else decode_part(value["t"], value["v"])
        )
        return types.OPTIONAL(key_type), key
    if java_type == "Map":
        key_type, keys = decode_common([k for k, _ in value])
        value_type, values = decode_common([v for _, v in value])
        return types.MAP(key_type, value_type), dict(zip(keys, values))
    raise NoKeyTypeError(java_type)


def decode_all(values: list[dict[str, Any]]) -> list[Typed]:
    return [decode_part(v["t"], v["v"]) for v in values]


def decode_part(java_type: str, value: Any) -> Typed:
    """Decode a part of a compound; of what no key type holds, the int of the same hash.

    Compounds see nothing of a part but its hash.
    """
    try:
        return decode(java_type, value)
    except (NoKeyTypeError, BeyondPythonError):
        code = by_formula(java_type, value)
        if code is None:
            raise
        return types.INT, code


def decode_row(value: dict[str, Any]) -> Typed:
    named = value.get("named")
    names = None if named is None else [name for name, _ in named]
    fields = decode_all(value["fields"] if named is None else [field for _, field in named])
    key_type = types.ROW(*(t for t, _ in fields), kind=value["kind"], names=names)
    return key_type, tuple(v for _, v in fields)


def decode_common(values: list[dict[str, Any]]) -> tuple[types.KeyType, list[Any]]:
    decoded = decode_all(values)
    found = {t for t, _ in decoded} - {types.NULL}
    if any(isinstance(t, (types.LIST, types.MAP)) for t in found) and len(found) > 1:
        raise NoKeyTypeError("a collection of several types")  # a Row looks into these
    empties = any(isinstance(t, types.OPTIONAL) for t in found)  # there None is Optional.empty()
    if len(found) > 1 or (empties and any(t is types.NULL for t, _ in decoded)):
        codes = [None if t is types.NULL else keygroups.hash_code(v, t) for t, v in decoded]
        return types.INT, list(codes)
    return (found.pop() if found else types.NULL), [v for _, v in decoded]


def by_formula(java_type: str, value: Any) -> int | None:
    """Return the hash of a value beyond Python's classes, from the parts that Java hashes."""

    def date(v: dict[str, int]) -> int:
        return keygroups.hash_code(LocalDate(**v), types.LOCAL_DATE)

    def time(v: dict[str, int]) -> int:
        return keygroups.hash_code(LocalTime(**v), types.LOCAL_TIME)

    if java_type == "Duration":  # Instant's formula in the JDK, and more seconds
        return instant_code(int(value["seconds"]), value["nanos"])
    if java_type == "Instant":
        instant = Instant(int(value["seconds"]), value["nanos"])
        return keygroups.hash_code(instant, types.INSTANT)
    if java_type == "LocalDate":
        return date(value)
    if java_type == "LocalTime":
        return time(value)
    if java_type == "LocalDateTime":
        key = LocalDateTime(**value["date"], **value["time"])
        return keygroups.hash_code(key, types.LOCAL_DATE_TIME)
    if java_type == "OffsetDateTime":  # LocalDateTime's xor the offset in seconds
        local = value["local"]
        return date(local["date"]) ^ time(local["time"]) ^ int(value["offset_seconds"])
    if java_type.startswith("java.sql."):
        return keygroups.hash_code(int(value["millis"]), types.LONG)
    return None
