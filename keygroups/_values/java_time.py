"""Java hash codes of dates and times: java.time and java.sql.

A `hash_*` function takes a Python value, checks it, and returns a signed 32-bit int.
"""

from __future__ import annotations

import datetime as dt
from typing import Protocol

from keygroups._checks import show
from keygroups._values.checks import (
    EPOCH,
    check_date,
    check_naive,
    check_time,
    instant_since_epoch,
)
from keygroups._values.java_lang import long_bits, signed
from keygroups._values.java_zones import doubtful_spans
from keygroups.errors import InvalidValueError

_MILLISECOND = dt.timedelta(milliseconds=1)


class Zoned(Protocol):
    """A key type of java.sql: the zone of Flink's JVM, and when it is certain there."""

    @property
    def name(self) -> str: ...
    @property
    def zone(self) -> dt.tzinfo: ...
    @property
    def certain_span(self) -> tuple[dt.datetime, dt.datetime]: ...


def local_date_code(year: int, month: int, day: int) -> int:
    """LocalDate.hashCode of any proleptic ISO date."""
    return signed((year & 0xFFFFF800) ^ ((year << 11) + (month << 6) + day))


def local_time_code(nano_of_day: int) -> int:
    """LocalTime.hashCode: the nanosecond of the day as a Long."""
    return long_bits(nano_of_day)


def instant_code(seconds: int, nanos: int) -> int:
    """Instant.hashCode of floored seconds since the epoch and the nanoseconds above them."""
    return signed(long_bits(seconds) + 51 * nanos)


def hash_local_date(key: object) -> int:
    """LocalDate.hashCode."""
    date = check_date("LOCAL_DATE", key)
    return local_date_code(date.year, date.month, date.day)


def hash_local_time(key: object) -> int:
    """LocalTime.hashCode."""
    return local_time_code(nano_of_day(check_time("LOCAL_TIME", key)))


def hash_local_date_time(key: object) -> int:
    """LocalDateTime.hashCode: that of the date xor that of the time."""
    local = check_naive("LOCAL_DATE_TIME", key)
    date_code = local_date_code(local.year, local.month, local.day)
    return date_code ^ local_time_code(nano_of_day(local))


def hash_instant(key: object) -> int:
    """Instant.hashCode."""
    since = instant_since_epoch("INSTANT", key)
    return instant_code(since.days * 86_400 + since.seconds, since.microseconds * 1_000)


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


def nano_of_day(time: dt.time | dt.datetime) -> int:
    """Return the nanoseconds since midnight."""
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return (seconds * 1_000_000 + time.microsecond) * 1_000
