"""The serializers of Flink SQL's rows: `keygroups.binary_row` backwards.

What Python cannot hold exactly stays as Flink has it: a date or a time beyond Python's as the
number of days or milliseconds, a timestamp beyond Python's years or finer than the microsecond
as `TimestampData`, and a value of a type with no Python class (RAW, MAP, MULTISET) as its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any, NamedTuple

from keygroups import types as kt
from keygroups._serializers.base import (
    TABLE,
    TRUNCATED,
    Composite,
    Read,
    Serializer,
    class_of,
    read_nested,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.java_objects import read_java_object
from keygroups._serializers.java_types import read_logical_type
from keygroups._serializers.scalars import read_bytes, write_bytes
from keygroups._values.checks import EPOCH
from keygroups._values.rows import ROW_KINDS, Row, row_of_kind
from keygroups.binary_row import value_row
from keygroups.errors import KeyGroupsError
from keygroups.logical_types import LogicalType, array_header_size, row_header_size

Get = Callable[[bytes, int], Any]  # of a row or an array and the position of a slot
Convert = Callable[[bytes], Any]  # of the bytes that a slot tells of
Place = tuple[Get, Convert | None, int, int, int]  # with the slot, the null byte and the null bit

_FORMATS = {"FLOAT": "<f", "DOUBLE": "<d", "INTERVAL_YEAR_MONTH": "<i", "INTERVAL_DAY_TIME": "<q"}
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MILLIS = 86_400_000
# Whatever the caller's context is.
_EXACT = Context(38, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])

_pair = struct.Struct("<II").unpack_from
_long = struct.Struct("<q").unpack_from
_count = struct.Struct("<i").unpack_from


class TimestampData(NamedTuple):
    """A timestamp as Flink SQL has it: milliseconds since the epoch, and nanoseconds above."""

    millisecond: int
    nano_of_millisecond: int


class RowDataSerializer(Serializer):
    """A SQL row: how many bytes, then a BinaryRowData."""

    name, snapshot, versions = "SQL_ROW", class_of(TABLE, "RowData"), (3,)

    def __init__(self, fields: Sequence[LogicalType]) -> None:
        self.fields = tuple(fields)
        with suppress(KeyGroupsError):  # of a type that makes no key, such as RAW
            self.key_type = kt.SQL_ROW(*map(str, fields))
        super().__init__(self.fields)

    def bind(self, reads: Sequence[Read]) -> None:
        read_fields, count = row_reader(self.fields), len(self.fields)

        def read_sql_row(data: bytes, pos: int) -> tuple[Row, int]:
            row, pos = read_bytes(data, pos)
            try:
                return read_fields(row), pos
            except TRUNCATED:  # more bytes after the row would not help
                raise ValueError(f"{len(row)} bytes are no row of {count} fields") from None

        self.read = read_sql_row
        if isinstance(key_type := self.key_type, kt.SQL_ROW):
            self.write = lambda values: write_bytes(value_row(values, key_type))

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        fields = [read_logical_type(cursor) for _ in range(cursor.count(4))]
        read_nested(cursor, depth)
        return cls(fields)


class RawValueDataSerializer(Composite):
    """A value of a RAW type: how many bytes, then those of the serializer within."""

    name, snapshot, outer_versions = "RAW", class_of(TABLE, "RawValueData"), (0,)
    read = staticmethod(read_bytes)

    def __init__(self, inner: Serializer) -> None:
        self._inner = inner  # no part: its values are not read
        super().__init__(inner)

    def nested(self) -> tuple[Serializer, ...]:
        return (self._inner,)


class ExternalSerializer(Composite):
    """What a serializer of SQL writes for values of other classes: it is read as that one."""

    snapshot, outer_versions = class_of(TABLE, "External"), (1,)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> None:
        read_java_object(cursor)  # the DataType, which the serializer nested in it tells of too
        cursor.bool()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: None) -> Serializer:
        [internal] = nested
        return internal


def row_reader(fields: Sequence[LogicalType]) -> Callable[[bytes], Row]:
    """Make the function from a BinaryRowData's bytes to its fields, None for NULL, and kind.

    It raises IndexError or struct.error where the bytes are too few, ValueError where they are
    no values of the types.
    """
    header = row_header_size(len(fields))
    new = tuple.__new__
    plan = [
        (*_get(one), header + 8 * index, 1 + index // 8, 1 << index % 8)
        for index, one in enumerate(fields)
    ]

    def read_row(row: bytes) -> Row:
        values = list(_values(row, plan))
        kind = row[0]
        if not kind:  # of nearly all, for which a call of `row_of_kind` would be felt
            return new(Row, values)
        if kind >= len(ROW_KINDS):
            raise ValueError(f"a row of kind {kind}")
        return row_of_kind(values, kind)

    return read_row


def _values(data: bytes, places: Iterable[Place]) -> Iterator[Any]:
    """Yield the values of a row or an array.

    What does not fit its slot has bytes of its own: BinaryRowWriter and BinaryArrayWriter put one
    after the other. So they are as long as the row together at most, at each depth.
    """
    room = len(data)
    for get, convert, slot, null_byte, null_bit in places:
        if data[null_byte] & null_bit:
            yield None
            continue
        value = get(data, slot)
        if convert is not None:
            room -= len(value)
            if room < 0:
                raise ValueError(f"values in a row of {len(data)} bytes overlap")
            value = convert(value)
        yield value


def _array_reader(element: LogicalType) -> Callable[[bytes], list[Any]]:
    (get, convert), step = _get(element), element.element_size

    def read_array(array: bytes) -> list[Any]:
        (count,) = _count(array, 0)
        header = array_header_size(count)
        if not 0 <= count <= len(array):
            raise ValueError(f"an array of {count} elements in {len(array)} bytes")
        if convert is None:
            return [
                None
                if array[4 + index // 8] & 1 << index % 8
                else get(array, header + step * index)
                for index in range(count)
            ]
        places = (
            (get, convert, header + step * index, 4 + index // 8, 1 << index % 8)
            for index in range(count)
        )
        return list(_values(array, places))

    return read_array


def _get(field: LogicalType) -> tuple[Get, Convert | None]:
    """Return what gets a value; or its bytes, and what makes the value of them."""
    name = field.name
    if name == "DATE":
        return _get_date, None
    if name == "TIME":
        return _get_time, None
    if (packed := _FORMATS.get(name) or field.packed) is not None:
        unpack = struct.Struct(packed).unpack_from
        return lambda row, slot: unpack(row, slot)[0], None
    if name == "DECIMAL":
        return _decimal_getter(field)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamp_getter(field), None
    if name == "ROW":
        return _part, row_reader(field.fields)
    if name == "ARRAY":
        return _part, _array_reader(field.fields[0])
    if name in ("CHAR", "VARCHAR"):
        return _get_bytes, bytes.decode
    if name in ("BINARY", "VARBINARY", "RAW"):
        return _get_bytes, bytes
    return _part, bytes  # MAP, MULTISET: a size, keys, values, in the order of a Java map


def _get_bytes(row: bytes, slot: int) -> bytes:
    mark = row[slot + 7]
    if mark & 0x80:
        return row[slot : slot + (mark & 0x7F)]
    return _part(row, slot)


def _part(row: bytes, slot: int) -> bytes:
    size, offset = _pair(row, slot)
    if offset + size > len(row):
        raise IndexError("too few bytes")
    return row[offset : offset + size]


def _get_date(row: bytes, slot: int) -> date | int:
    (days,) = _count(row, slot)
    ordinal: int = days + _EPOCH_DAY
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else days


def _get_time(row: bytes, slot: int) -> time | int:
    millis: int = _count(row, slot)[0]
    if not 0 <= millis < _DAY_MILLIS:
        return millis
    return (EPOCH + timedelta(milliseconds=millis)).time()


def _decimal_getter(field: LogicalType) -> tuple[Get, Convert | None]:
    scale = field.scale or 0
    limit = 10 ** (field.precision or 0)

    def get_decimal(row: bytes, slot: int) -> Decimal:
        # Of whatever precision, as Flink's DecimalData.fromUnscaledLong does not look at it.
        return Decimal(_long(row, slot)[0]).scaleb(-scale, _EXACT)

    def to_decimal(data: bytes) -> Decimal:
        # DecimalData.fromUnscaledBytes makes null of more digits, and 16 bytes are reserved.
        if not 0 < len(data) <= field.reserved:
            raise ValueError(f"a {field} of {len(data)} bytes")
        unscaled = int.from_bytes(data, signed=True, byteorder="big")
        if not -limit < unscaled < limit:
            raise ValueError(f"a {field} of more digits: {unscaled}")
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    return (_part, to_decimal) if field.reserved else (get_decimal, None)


def _timestamp_getter(field: LogicalType) -> Get:
    compact = not field.reserved
    zone = timezone.utc if field.name == "TIMESTAMP_LTZ" else None

    def get_timestamp(row: bytes, slot: int) -> datetime | TimestampData:
        nanos = 0
        if not compact:
            nanos, slot = _pair(row, slot)
        (millis,) = _long(row, slot)
        if not nanos % 1_000:
            try:
                moment = EPOCH + timedelta(milliseconds=millis, microseconds=nanos // 1_000)
            except OverflowError:
                return TimestampData(millis, nanos)
            return moment.replace(tzinfo=zone)
        return TimestampData(millis, nanos)

    return get_timestamp
