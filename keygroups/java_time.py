"""Java hash codes of dates and times: java.time and java.sql.

A `hash_*` function takes a Python value, checks it, and returns a signed 32-bit int.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from keygroups.errors import InvalidTypeError, InvalidValueError, show
from keygroups.java_lang import expect, long_bits, signed
from keygroups.java_zones import doubtful_spans
from keygroups.types import SqlType

__all__ = [
    "certain_span",
    "check_date",
    "check_time",
    "hash_instant",
    "hash_local_date",
    "hash_local_date_time",
    "hash_local_time",
    "instant_code",
    "instant_since_epoch",
    "local_date_code",
    "local_since_epoch",
    "local_time_code",
    "sql_date_hasher",
    "sql_time_hasher",
    "sql_timestamp_hasher",
]

_UTC_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_EPOCH = dt.datetime(1970, 1, 1)
_MILLISECOND = dt.timedelta(milliseconds=1)
# Where java.util.Date and Python agree. The JDK's old calendar is Julian before 1582-10-15.
# Outside the other span the time zone data of JDKs and systems differ: in the history of zones
# before 1970, and in how far ahead the JDK follows a zone's rules.
_UTC_SPAN = (dt.datetime(1582, 10, 15), dt.datetime.max)
_ZONE_SPAN = (dt.datetime(1970, 1, 1), dt.datetime(2036, 12, 31, 23, 59, 59, 999_999))


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
    return local_time_code(_nano_of_day(check_time("LOCAL_TIME", key)))


def hash_local_date_time(key: object) -> int:
    """LocalDateTime.hashCode: that of the date xor that of the time."""
    local = _naive("LOCAL_DATE_TIME", key)
    date_code = local_date_code(local.year, local.month, local.day)
    return date_code ^ local_time_code(_nano_of_day(local))


def hash_instant(key: object) -> int:
    """Instant.hashCode."""
    since = instant_since_epoch("INSTANT", key)
    return instant_code(since.days * 86_400 + since.seconds, since.microseconds * 1_000)


def sql_date_hasher(key_type: SqlType) -> Callable[[object], int]:
    """Make the hasher of java.sql.Date: the epoch millisecond of local midnight."""

    def hash_sql_date(key: object) -> int:
        midnight = dt.datetime.combine(check_date("SQL_DATE", key), dt.time())
        return long_bits(_epoch_millis(midnight, key_type))

    return hash_sql_date


def sql_time_hasher(key_type: SqlType) -> Callable[[object], int]:
    """Make the hasher of java.sql.Time: the epoch millisecond on 1970-01-01."""

    def hash_sql_time(key: object) -> int:
        time = check_time("SQL_TIME", key)
        if time.microsecond % 1_000:
            raise InvalidValueError(
                f"key of type SQL_TIME must be whole milliseconds, got {show(key)}"
            )
        return long_bits(_epoch_millis(dt.datetime.combine(_EPOCH.date(), time), key_type))

    return hash_sql_time


def sql_timestamp_hasher(key_type: SqlType) -> Callable[[object], int]:
    """Make the hasher of java.sql.Timestamp: its epoch millisecond, rounded down."""

    def hash_sql_timestamp(key: object) -> int:
        return long_bits(_epoch_millis(_naive("SQL_TIMESTAMP", key), key_type))

    return hash_sql_timestamp


def _epoch_millis(local: dt.datetime, key_type: SqlType) -> int:
    """Return the epoch millisecond of a wall-clock time where Java and Python agree on it."""
    local = local.replace(fold=0)
    first, last = certain_span(key_type)
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
    return (local - _EPOCH - (offset or dt.timedelta())) // _MILLISECOND


def certain_span(key_type: SqlType) -> tuple[dt.datetime, dt.datetime]:
    """Return the first and last wall-clock time that Java and Python turn into one instant."""
    return _UTC_SPAN if key_type.name == "UTC" else _ZONE_SPAN


def _nano_of_day(time: dt.time | dt.datetime) -> int:
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return (seconds * 1_000_000 + time.microsecond) * 1_000


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
    return value - _UTC_EPOCH


def local_since_epoch(name: str, key: object) -> dt.timedelta:
    """Return how far a naive datetime is from the epoch, as if it were in UTC."""
    return _naive(name, key) - _EPOCH


def _naive(name: str, key: object) -> dt.datetime:
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
