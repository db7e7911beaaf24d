"""The serializers of PyFlink's SQL functions: of texts, numbers, dates and times.

Dates and times are those of the zone of Flink's JVM, which nothing here tells; so they have none.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation

from keygroups import types as kt
from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_class, check_int, show
from keygroups._serializers.base import TABLE, Read, Serializer, Simple, class_of
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.scalars import (
    StringDataSerializer,
    pack_int,
    read_bytes,
    read_int,
    write_bytes,
)
from keygroups._serializers.value_checks import check_value
from keygroups._values.checks import EPOCH, check_date, check_naive, check_time
from keygroups._values.sql import TimestampData
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType

PYTHON = f"{TABLE}serializers.python."

_DAY_MILLIS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MILLISECOND = timedelta(milliseconds=1)
_NANOS = 1_000_000  # of a millisecond
_COMPACT_PRECISION = 3
_IN_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?(E[+-][0-9]{1,10})?")
_AS_JAVA = Context(capitals=1)  # whatever the caller's context is

_long = struct.Struct(">q")
_timestamp = struct.Struct(">qi")


def read_decimal(data: bytes, pos: int) -> tuple[Decimal, int]:
    """Read a BigDecimal as its text."""
    encoded, pos = read_bytes(data, pos)
    text = encoded.decode("ascii")
    if _IN_TEXT.fullmatch(text) is None:
        raise ValueError(f"{show(text)} is no text of a BigDecimal")
    number = Decimal(text)
    if number.is_zero() and number.is_signed():
        raise ValueError("a BigDecimal of -0, which Java has not")
    return number, pos


def write_decimal(number: Decimal) -> bytes:
    """Write a BigDecimal as its text, which the standard of Python's decimals has from Java.

    JDK: BigDecimal.toString.
    """
    text = _AS_JAVA.to_sci_string(number if number else number.copy_abs())
    return write_bytes(text.encode())


class PythonBigDecSerializer(Simple):
    name, snapshot = "PYTHON_BIG_DEC", class_of(PYTHON, "BigDec")
    read = staticmethod(read_decimal)

    @staticmethod
    def write(value: Decimal) -> bytes:
        check_value(value, kt.BIG_DEC)
        return write_decimal(value)


class PythonStringSerializer(StringDataSerializer):
    name, snapshot = "PYTHON_STRING", class_of(PYTHON, "String")


class PythonDateSerializer(Simple):
    """A java.sql.Date: the number of its day. It is an int where Python has no such date."""

    name, snapshot, size = "PYTHON_DATE", class_of(PYTHON, "Date"), 4

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[date | int, int]:
        days, pos = read_int(data, pos)
        ordinal = days + _EPOCH_DAY
        in_python = 1 <= ordinal <= date.max.toordinal()
        return date.fromordinal(ordinal) if in_python else days, pos

    @staticmethod
    def write(value: object) -> bytes:
        if isinstance(value, date):
            return pack_int(check_date("PYTHON_DATE", value).toordinal() - _EPOCH_DAY)
        return pack_int(
            check_int("PYTHON_DATE, a date or a day's number,", value, INT_MIN, INT_MAX)
        )


class PythonTimeSerializer(Simple):
    """A java.sql.Time: the millisecond of the day. It is an int where a day has no such."""

    name, snapshot, size = "PYTHON_TIME", class_of(PYTHON, "Time"), 4

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[time | int, int]:
        millis, pos = read_int(data, pos)
        if not 0 <= millis < _DAY_MILLIS:
            return millis, pos
        return (EPOCH + timedelta(milliseconds=millis)).time(), pos

    @staticmethod
    def write(value: object) -> bytes:
        name = "PYTHON_TIME"
        if not isinstance(value, time):
            return pack_int(check_int(f"{name}, a time or milliseconds,", value, INT_MIN, INT_MAX))
        since = datetime.combine(EPOCH, check_time(name, value)) - EPOCH
        if since % _MILLISECOND:
            raise InvalidValueError(f"{name} must be whole milliseconds, got {show(value)}")
        return pack_int(since // _MILLISECOND)


class PythonDecimalSerializer(Serializer):
    """A DECIMAL, as text with all its fraction digits."""

    name, versions = "PYTHON_DECIMAL", (1,)
    snapshot = f"{PYTHON}DecimalDataSerializer$DecimalSerializerSnapshot"

    def __init__(self, precision: int, scale: int) -> None:
        self.fields = (LogicalType("DECIMAL", precision=precision, scale=scale),)
        super().__init__(precision, scale)

    def bind(self, reads: Sequence[Read]) -> None:
        [field] = self.fields
        context = Context(
            field.precision, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, InvalidOperation]
        )
        unit = Decimal((0, (1,), -(field.scale or 0)))

        def fitted(number: Decimal) -> Decimal:
            if not number.is_finite():
                raise InvalidValueError(f"{field} must be finite, got {show(number)}")
            try:
                return context.quantize(number, unit)
            except (Inexact, InvalidOperation):
                raise InvalidValueError(
                    f"{field} must have at most {field.precision} digits, {field.scale} of them "
                    f"after the point, got {show(number)}"
                ) from None

        def read_fitted(data: bytes, pos: int) -> tuple[Decimal, int]:
            number, pos = read_decimal(data, pos)
            if not number.same_quantum(unit):
                raise ValueError(f"a {field} of {show(number)}")
            return fitted(number), pos

        def write_fitted(value: object) -> bytes:
            return write_decimal(fitted(check_class(str(field), value, Decimal, "a Decimal")))

        self.read, self.write = read_fitted, write_fitted

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        precision = cursor.expect("precision", cursor.i32(), *range(1, 39))
        return cls(precision, cursor.expect("scale", cursor.i32(), *range(precision + 1)))

    def contents(self) -> bytes:
        [field] = self.fields
        return i32(field.precision or 0) + i32(field.scale or 0)


class PythonTimestampSerializer(Serializer):
    """A java.sql.Timestamp: milliseconds; with more than 3 digits, nanoseconds above them."""

    name, versions = "PYTHON_TIMESTAMP", (1,)
    snapshot = class_of(PYTHON, "Timestamp")

    def __init__(self, precision: int) -> None:
        self.fields = (LogicalType("TIMESTAMP", precision=precision),)
        self.size = _long.size if precision <= _COMPACT_PRECISION else _timestamp.size
        super().__init__(precision)

    def bind(self, reads: Sequence[Read]) -> None:
        [field] = self.fields
        name, is_compact = str(field), self.size == _long.size

        def read_compact(data: bytes, pos: int) -> tuple[datetime | TimestampData, int]:
            (millis,) = _long.unpack_from(data, pos)
            return _moment(millis, 0), pos + _long.size

        def read_timestamp(data: bytes, pos: int) -> tuple[datetime | TimestampData, int]:
            millis, nanos = _timestamp.unpack_from(data, pos)
            if not 0 <= nanos < _NANOS:
                raise ValueError(f"{nanos} nanoseconds of a millisecond")
            return _moment(millis, nanos), pos + _timestamp.size

        def write_timestamp(value: object) -> bytes:
            millis, nanos = _millis_and_nanos(name, value)
            if not is_compact:
                return _timestamp.pack(millis, nanos)
            if nanos:
                raise InvalidValueError(f"{name} must be whole milliseconds, got {show(value)}")
            return _long.pack(millis)

        self.read = read_compact if is_compact else read_timestamp
        self.write = write_timestamp

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls(cursor.expect("precision", cursor.i32(), *range(10)))

    def contents(self) -> bytes:
        [field] = self.fields
        return i32(field.precision or 0)


def _moment(millis: int, nanos: int) -> datetime | TimestampData:
    if not nanos % 1_000:
        try:
            return EPOCH + timedelta(milliseconds=millis, microseconds=nanos // 1_000)
        except OverflowError:
            pass
    return TimestampData(millis, nanos)


def _millis_and_nanos(name: str, value: object) -> tuple[int, int]:
    if isinstance(value, TimestampData):
        millis = check_int(f"the millisecond of a {name}", value.millisecond, LONG_MIN, LONG_MAX)
        nanos = value.nano_of_millisecond
        return millis, check_int(f"the nanoseconds of a {name}", nanos, 0, _NANOS - 1)
    since = check_naive(name, value) - EPOCH
    return since // _MILLISECOND, since % _MILLISECOND // timedelta(microseconds=1) * 1_000
