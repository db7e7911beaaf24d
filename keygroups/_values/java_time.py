"""Java hash codes of dates and times: java.time and java.sql.

A `hash_*` function takes a Python value, checks it, and returns a signed 32-bit int.
"""

from __future__ import annotations

import datetime as dt
from calendar import isleap
from typing import Protocol

from keygroups._checks import check_int, show
from keygroups._values.checks import (
    EPOCH,
    check_date,
    check_naive,
    check_time,
    instant_since_epoch,
)
from keygroups._values.java_lang import long_bits, signed
from keygroups._values.java_values import Instant, LocalDate, LocalDateTime, LocalTime
from keygroups._values.java_zones import doubtful_spans
from keygroups.errors import InvalidValueError

MAX_YEAR = 999_999_999
"""The last year of java.time; the first is its negative."""

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST = LocalTime(23, 59, 59, 999_999_999)
_INSTANT_SECONDS = (-31_557_014_167_219_200, 31_556_889_864_403_199)  # Instant.MIN, Instant.MAX
_MILLISECOND = dt.timedelta(milliseconds=1)


class Zoned(Protocol):
    """A key type of java.sql: the zone of Flink's JVM, and the span in which it is certain."""

    @property
    def name(self) -> str: ...
    @property
    def zone(self) -> dt.tzinfo: ...
    @property
    def certain_span(self) -> tuple[dt.datetime, dt.datetime]: ...


def local_date_code(year: int, month: int, day: int) -> int:
    """Return LocalDate.hashCode of any proleptic ISO date."""
    return signed((year & 0xFFFFF800) ^ ((year << 11) + (month << 6) + day))


def local_time_code(nano_of_day: int) -> int:
    """Return LocalTime.hashCode, that of the nanosecond of the day as a Long."""
    return long_bits(nano_of_day)


def instant_code(seconds: int, nanos: int) -> int:
    """Return Instant.hashCode of floored seconds since the epoch and the nanoseconds above."""
    return signed(long_bits(seconds) + 51 * nanos)


def to_local_date(name: str, key: object) -> tuple[int, int, int]:
    """Return the fields of a date, or of a valid LocalDate."""
    if isinstance(key, LocalDate):
        return check_local_date(name, key)
    date = check_date(name, key)
    return date.year, date.month, date.day


def check_local_date(name: str, date: LocalDate) -> LocalDate:
    """Return a date if it is valid in Java."""
    year = check_int(f"the year of a {name}", date.year, -MAX_YEAR, MAX_YEAR)
    month = check_int(f"the month of a {name}", date.month, 1, 12)
    days = 29 if month == 2 and isleap(year) else _DAYS[month - 1]
    return LocalDate(year, month, check_int(f"the day of a {name}", date.day, 1, days))


def to_local_time(name: str, key: object) -> tuple[int, int, int, int]:
    """Return the fields of a time, or of a valid LocalTime."""
    if isinstance(key, LocalTime):
        return check_local_time(name, key)
    time = check_time(name, key)
    return time.hour, time.minute, time.second, time.microsecond * 1_000


def check_local_time(name: str, time: LocalTime) -> LocalTime:
    """Return a time if it is valid in Java."""
    fields = zip(LocalTime._fields, time, _LAST)
    return LocalTime(
        *(check_int(f"the {field} of a {name}", value, 0, most) for field, value, most in fields)
    )


def to_local_date_time(name: str, key: object) -> tuple[int, ...]:
    """Return the seven fields of a naive datetime, or of a valid LocalDateTime."""
    if isinstance(key, LocalDateTime):
        date = check_local_date(name, LocalDate(*key[:3]))
        return *date, *check_local_time(name, LocalTime(*key[3:]))
    local = check_naive(name, key)
    nano = local.microsecond * 1_000
    return local.year, local.month, local.day, local.hour, local.minute, local.second, nano


def to_instant(name: str, key: object) -> tuple[int, int]:
    """Return the seconds and nanoseconds of an aware datetime, or of a valid Instant."""
    if isinstance(key, Instant):
        return check_instant(name, key)
    since = instant_since_epoch(name, key)
    return since.days * 86_400 + since.seconds, since.microseconds * 1_000


def check_instant(name: str, instant: Instant) -> Instant:
    """Return an instant if it is valid in Java."""
    return Instant(
        check_int(f"the epoch second of a {name}", instant.epoch_second, *_INSTANT_SECONDS),
        check_int(f"the nano of a {name}", instant.nano, 0, _LAST[-1]),
    )


def hash_local_date(key: object) -> int:
    """LocalDate.hashCode."""
    return local_date_code(*to_local_date("LOCAL_DATE", key))


def hash_local_time(key: object) -> int:
    """LocalTime.hashCode."""
    return local_time_code(nano_of_day(*to_local_time("LOCAL_TIME", key)))


def hash_local_date_time(key: object) -> int:
    """LocalDateTime.hashCode: that of the date xor that of the time."""
    year, month, day, hour, minute, second, nano = to_local_date_time("LOCAL_DATE_TIME", key)
    time_code = local_time_code(nano_of_day(hour, minute, second, nano))
    return local_date_code(year, month, day) ^ time_code


def hash_instant(key: object) -> int:
    """Instant.hashCode."""
    return instant_code(*to_instant("INSTANT", key))


def hash_sql_date(key_type: Zoned, key: object) -> int:
    """java.sql.Date.hashCode, of the epoch millisecond of local midnight."""
    midnight = dt.datetime.combine(check_date("SQL_DATE", key), dt.time())
    return long_bits(_epoch_millis(midnight, key_type))


def hash_sql_time(key_type: Zoned, key: object) -> int:
    """java.sql.Time.hashCode, of the epoch millisecond on 1970-01-01."""
    time = check_time("SQL_TIME", key)
    if time.microsecond % 1_000:
        raise InvalidValueError(
            f"key of type SQL_TIME must be whole milliseconds, got {show(key)}"
        )
    return long_bits(_epoch_millis(dt.datetime.combine(EPOCH, time), key_type))


def hash_sql_timestamp(key_type: Zoned, key: object) -> int:
    """java.sql.Timestamp.hashCode, of its epoch millisecond, rounded down."""
    return long_bits(_epoch_millis(check_naive("SQL_TIMESTAMP", key), key_type))


def _epoch_millis(local: dt.datetime, key_type: Zoned) -> int:
    """Return the epoch millisecond of a wall-clock time where Java and Python agree on it."""
    local = local.replace(fold=0)
    first, last = key_type.certain_span
    if not first <= local <= last:
        raise InvalidValueError(
            f"key of type {key_type} must be from {first.date()} to {last.date()}, where Java's "
            f"calendar and time zones are certain, got {local}"
        )
    for start, end in doubtful_spans(key_type.name):
        if start <= local < end:
            raise InvalidValueError(
                f"key of type {key_type} must not be from {start} up to {end}, where releases of "
                f"the time zone data differ, and so may Java's and this machine's, got {local}"
            )
    offset = key_type.zone.utcoffset(local.replace(tzinfo=key_type.zone))
    if offset != key_type.zone.utcoffset(local.replace(tzinfo=key_type.zone, fold=1)):
        raise InvalidValueError(
            f"key of type {key_type} must be one instant, got {local}, which a clock change "
            "skips or repeats"
        )
    return (local - EPOCH - (offset or dt.timedelta())) // _MILLISECOND


def nano_of_day(hour: int, minute: int, second: int, nano: int) -> int:
    """Return the nanoseconds since midnight."""
    return ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nano


def milli_of_day(time: dt.time) -> int:
    """Return the whole milliseconds since midnight."""
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000 + time.microsecond // 1_000
