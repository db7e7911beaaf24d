"""From the bytes of Flink SQL's rows to Python's values: `keygroups.binary_row` backwards.

What Python cannot hold exactly stays as Flink has it: a date or a time beyond Python's as the
number of days or milliseconds, a timestamp beyond Python's years or finer than the microsecond
as `TimestampData`, and a value of a type with no Python class (RAW, MAP, MULTISET) as its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from typing import Any, NamedTuple

from keygroups._checks import EPOCH
from keygroups._serializers import ROW_KINDS, Row, row_of_kind
from keygroups.logical_types import LogicalType

Get = Callable[[bytes, int], Any]  # of a row or an array and the position of a slot

_FORMATS = {"FLOAT": "<f", "DOUBLE": "<d", "INTERVAL_YEAR_MONTH": "<i", "INTERVAL_DAY_TIME": "<q"}
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MILLIS = 86_400_000
_EXACT = Context(prec=38)

_pair = struct.Struct("<II").unpack_from
_long = struct.Struct("<q").unpack_from
_count = struct.Struct("<i").unpack_from


class TimestampData(NamedTuple):
    """A timestamp as Flink SQL has it: milliseconds since the epoch, and nanoseconds above."""

    millisecond: int
    nano_of_millisecond: int


def row_reader(fields: Sequence[LogicalType]) -> Callable[[bytes], Row]:
    """Make the function from a BinaryRowData's bytes to its fields, None for NULL, and kind.

    It raises IndexError or struct.error where the bytes are too few, ValueError where they are
    no values of the types.
    """
    header = (len(fields) + 63 + 8) // 64 * 8
    new = tuple.__new__
    plan = [
        (_get(one), header + 8 * index, 1 + index // 8, 1 << index % 8)
        for index, one in enumerate(fields)
    ]

    def read_row(row: bytes) -> Row:
        values = [
            None if row[null_byte] & null_bit else get(row, slot)
            for get, slot, null_byte, null_bit in plan
        ]
        kind = row[0]
        if not kind:  # of nearly all, for which a call of `row_of_kind` would be felt
            return new(Row, values)
        if kind >= len(ROW_KINDS):
            raise ValueError(f"a row of kind {kind}")
        return row_of_kind(values, kind)

    return read_row


def _array_reader(element: LogicalType) -> Callable[[bytes], list[Any]]:
    get, step = _get(element), element.element_size

    def read_array(array: bytes) -> list[Any]:
        (count,) = _count(array, 0)
        header = 4 + (count + 31) // 32 * 4
        if not 0 <= count <= len(array):
            raise ValueError(f"an array of {count} elements in {len(array)} bytes")
        return [
            None if array[4 + index // 8] & 1 << index % 8 else get(array, header + step * index)
            for index in range(count)
        ]

    return read_array


def _get(field: LogicalType) -> Get:
    name = field.name
    if name == "DATE":
        return _get_date
    if name == "TIME":
        return _get_time
    if (packed := _FORMATS.get(name) or field.packed) is not None:
        unpack = struct.Struct(packed).unpack_from
        return lambda row, slot: unpack(row, slot)[0]
    if name == "DECIMAL":
        return _decimal_getter(field)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamp_getter(field)
    if name == "ROW":
        read_row = row_reader(field.fields)
        return lambda row, slot: read_row(_part(row, slot))
    if name == "ARRAY":
        read_array = _array_reader(field.fields[0])
        return lambda row, slot: read_array(_part(row, slot))
    if name in ("CHAR", "VARCHAR"):
        return lambda row, slot: _get_bytes(row, slot).decode()
    if name in ("BINARY", "VARBINARY", "RAW"):
        return _get_bytes
    return _part  # MAP, MULTISET: a size, keys, values, in the order of a Java map


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


def _decimal_getter(field: LogicalType) -> Get:
    scale = field.scale or 0
    compact = not field.reserved

    def get_decimal(row: bytes, slot: int) -> Decimal:
        unscaled = (
            _long(row, slot)[0]
            if compact
            else int.from_bytes(_part(row, slot), signed=True, byteorder="big")
        )
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    return get_decimal


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
