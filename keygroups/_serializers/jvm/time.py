"""The serializers of dates and times: java.util.Date, java.sql and java.time."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence

from keygroups import types as kt
from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import BASE, Read, Simple, class_of
from keygroups._values.checks import UTC_EPOCH, instant_since_epoch
from keygroups._values.java_time import (
    check_instant,
    check_local_date,
    check_local_time,
    to_instant,
    to_local_date,
    to_local_date_time,
    to_local_time,
)
from keygroups._values.java_values import Instant, LocalDate, LocalDateTime, LocalTime
from keygroups.errors import InvalidValueError

_MILLISECOND = dt.timedelta(milliseconds=1)
_INT_NULL = -(2**31)
_BYTE_NULL = -(2**7)

_millis = struct.Struct(">q")
_moment = struct.Struct(">qi")
_date = struct.Struct(">iBB")
_time = struct.Struct(">bBBi")


def millis_value(millis: int) -> dt.datetime | int:
    """Return epoch milliseconds as a datetime in UTC, or the int beyond Python's years."""
    try:
        return UTC_EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return millis


def _to_millis(name: str, value: object) -> int:
    if isinstance(value, dt.datetime):
        since = instant_since_epoch(name, value)
        if since % _MILLISECOND:
            raise InvalidValueError(f"{name} must be whole milliseconds, got {show(value)}")
        return since // _MILLISECOND
    return check_int(f"{name}, a datetime or epoch milliseconds,", value, LONG_MIN + 1, LONG_MAX)


class DateSerializer(Simple):
    """A java.util.Date: epoch milliseconds, of which Long.MIN_VALUE stands for null."""

    name, snapshot, size = "DATE", class_of(BASE, "Date"), 8
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.datetime | int | None, int]:
        (millis,) = _millis.unpack_from(data, pos)
        return None if millis == LONG_MIN else millis_value(millis), pos + 8

    def bind(self, reads: Sequence[Read]) -> None:
        name = self.name

        def write_date(value: object) -> bytes:
            return _millis.pack(LONG_MIN if value is None else _to_millis(name, value))

        self.write = write_date


class SqlDateSerializer(DateSerializer):
    name, snapshot = "SQL_DATE", class_of(BASE, "SqlDate")


class SqlTimeSerializer(DateSerializer):
    name, snapshot = "SQL_TIME", class_of(BASE, "SqlTime")


class SqlTimestampSerializer(Simple):
    """A java.sql.Timestamp: epoch milliseconds, and the nanoseconds of the second.

    A null is read but never written: Flink itself reads fewer bytes of one than it writes.
    """

    name, snapshot, size = "SQL_TIMESTAMP", class_of(BASE, "SqlTimestamp"), 12

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.datetime | Instant | None, int]:
        millis, nanos = _moment.unpack_from(data, pos)
        pos += 12
        if millis == LONG_MIN:
            return None, pos
        second = millis // 1_000
        return as_datetime(second, nanos) or check_instant(
            "SQL_TIMESTAMP", Instant(second, nanos)
        ), pos

    @staticmethod
    def write(value: object) -> bytes:
        second, nano = to_instant("SQL_TIMESTAMP", value)
        millis = second * 1_000 + nano // 1_000_000
        name = "the epoch milliseconds of a SQL_TIMESTAMP"
        return _moment.pack(check_int(name, millis, LONG_MIN + 1, LONG_MAX), nano)


def as_datetime(second: int, nano: int) -> dt.datetime | None:
    """Return an instant as a datetime in UTC, None if Python has no such one."""
    if nano % 1_000 or not 0 <= nano < 1_000_000_000:
        return None
    try:
        return UTC_EPOCH + dt.timedelta(seconds=second, microseconds=nano // 1_000)
    except OverflowError:
        return None


def as_local_date_time(
    date: dt.date | LocalDate, time: dt.time | LocalTime
) -> dt.datetime | LocalDateTime:
    """Return the datetime of a date and a time, or a LocalDateTime if one is a Java value."""
    if isinstance(date, dt.date):
        if isinstance(time, dt.time):
            return dt.datetime.combine(date, time)
        date = LocalDate(date.year, date.month, date.day)
    if isinstance(time, dt.time):
        time = LocalTime(time.hour, time.minute, time.second, time.microsecond * 1_000)
    return LocalDateTime(*date, *time)


class InstantSerializer(Simple):
    name, snapshot, size, key_type = "INSTANT", class_of(BASE, "Instant"), 12, kt.INSTANT
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.datetime | Instant | None, int]:
        second, nano = _moment.unpack_from(data, pos)
        pos += 12
        if second == LONG_MIN and nano == _INT_NULL:
            return None, pos
        return as_datetime(second, nano) or check_instant("INSTANT", Instant(second, nano)), pos

    @staticmethod
    def write(value: object) -> bytes:
        if value is None:
            return _moment.pack(LONG_MIN, _INT_NULL)
        return _moment.pack(*to_instant("INSTANT", value))


class LocalDateSerializer(Simple):
    name, snapshot, size, key_type = "LOCAL_DATE", class_of(BASE, "LocalDate"), 6, kt.LOCAL_DATE
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.date | LocalDate | None, int]:
        year, month, day = _date.unpack_from(data, pos)
        pos += 6
        if 1 <= year <= dt.MAXYEAR:
            return dt.date(year, month, day), pos
        if year == _INT_NULL:
            return None, pos
        return check_local_date("LOCAL_DATE", LocalDate(year, month, day)), pos

    @staticmethod
    def write(value: object) -> bytes:
        if value is None:
            return _date.pack(_INT_NULL, 0x80, 0)
        return _date.pack(*to_local_date("LOCAL_DATE", value))


class LocalTimeSerializer(Simple):
    name, snapshot, size, key_type = "LOCAL_TIME", class_of(BASE, "LocalTime"), 7, kt.LOCAL_TIME
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.time | LocalTime | None, int]:
        hour, minute, second, nano = _time.unpack_from(data, pos)
        pos += 7
        if hour == _BYTE_NULL:
            return None, pos
        if not nano % 1_000:
            return dt.time(hour, minute, second, nano // 1_000), pos
        return check_local_time("LOCAL_TIME", LocalTime(hour, minute, second, nano)), pos

    @staticmethod
    def write(value: object) -> bytes:
        if value is None:
            return _time.pack(_BYTE_NULL, 0x80, 0, _INT_NULL)
        return _time.pack(*to_local_time("LOCAL_TIME", value))


class LocalDateTimeSerializer(Simple):
    """A LocalDate, and a LocalTime."""

    name, snapshot, size = "LOCAL_DATE_TIME", class_of(BASE, "LocalDateTime"), 13
    key_type, takes_null = kt.LOCAL_DATE_TIME, True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[dt.datetime | LocalDateTime | None, int]:
        date, pos = LocalDateSerializer.read(data, pos)
        time, pos = LocalTimeSerializer.read(data, pos)
        if date is None and time is None:
            return None, pos
        if date is None or time is None:
            raise ValueError("a date without a time, or a time without a date")
        return as_local_date_time(date, time), pos

    @staticmethod
    def write(value: object) -> bytes:
        if value is None:
            return LocalDateSerializer.write(None) + LocalTimeSerializer.write(None)
        fields = to_local_date_time("LOCAL_DATE_TIME", value)
        return _date.pack(*fields[:3]) + _time.pack(*fields[3:])
