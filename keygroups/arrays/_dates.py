"""Dates and times of Arrow, as java.time and java.sql hash them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from keygroups import types
from keygroups._values.checks import EPOCH, UTC_EPOCH
from keygroups.arrays._kernels import Array, Codes, fold_long
from keygroups.arrays._rows import check_type, is_timestamp, numbers, refuse, refuse_as_the_core
from keygroups.hashing import hash_code

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_MOST_SECONDS = 2**31 * _DAY  # as many days as a date of 32 bits has


def date_codes(array: pa.Array) -> Codes:
    """LocalDate.hashCode."""
    check_type(pa.types.is_date32(array.type), "key type LOCAL_DATE", "dates (date32)", array)
    return _of_days(numbers(array).astype(np.int64))


def _of_days(days: Array) -> Codes:
    """Return the hash codes of dates by their days since 1970, in the proleptic calendar."""
    # Years from March on: then the leap day is the last one, and months have a formula.
    era, day = np.divmod(days + 719_468, 146_097)  # from 0000-03-01, in spans of 400 years
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += np.where(month < 10, 3, -9)
    year += era * 400 + (month <= 2)
    code: Codes = ((year & ~0x7FF) ^ ((year << 11) + (month << 6) + day)).astype(np.uint32)
    return code


def seconds_and_nanos(array: pa.Array, what: object) -> tuple[Array, Array]:
    """Return timestamps as floored seconds since 1970 and the nanoseconds above them."""
    per_second = _PER_SECOND[array.type.unit]
    values = numbers(array)
    seconds = values // per_second
    far = (seconds < -_MOST_SECONDS) | (seconds >= _MOST_SECONDS)
    refuse(far, values, f"{what} must be within 2^31 days of 1970")
    return seconds, (values - seconds * per_second) * (10**9 // per_second)


def nano_of_day(array: pa.Array, what: str, name: str) -> Array:
    """Return the nanoseconds since midnight of times."""
    check_type(pa.types.is_time(array.type), what, "times (time32, time64)", array)
    values = numbers(array)
    per_second = _PER_SECOND[array.type.unit]
    outside = (values < 0) | (values >= _DAY * per_second)
    refuse(outside, values, f"{name} must be from midnight up to the next one")
    nanos: Array = values.astype(np.int64) * (10**9 // per_second)
    return nanos


def time_codes(array: pa.Array) -> Codes:
    """LocalTime.hashCode."""
    return fold_long(nano_of_day(array, "key type LOCAL_TIME", "key of type LOCAL_TIME"))


def date_time_codes(array: pa.Array) -> Codes:
    """LocalDateTime.hashCode: that of the date xor that of the time."""
    right = is_timestamp(array, zoned=False)
    check_type(right, "key type LOCAL_DATE_TIME", "timestamps without a zone", array)
    seconds, nanos = seconds_and_nanos(array, "key of type LOCAL_DATE_TIME")
    days = seconds // _DAY
    return _of_days(days) ^ fold_long((seconds - days * _DAY) * 10**9 + nanos)


def instant_codes(array: pa.Array) -> Codes:
    """Instant.hashCode."""
    right = is_timestamp(array, zoned=True)
    check_type(right, "key type INSTANT", "timestamps with a zone", array)
    seconds, nanos = seconds_and_nanos(array, "key of type INSTANT")
    return fold_long(seconds) + (nanos * 51).astype(np.uint32)


def sql_date_codes(array: pa.Array, key_type: types.SQL_DATE) -> Codes:
    """java.sql.Date.hashCode, of the epoch millisecond of local midnight."""
    check_type(pa.types.is_date32(array.type), f"key type {key_type}", "dates (date32)", array)
    days = numbers(array).astype(np.int64)
    first, last = ((moment - EPOCH).days for moment in key_type.certain_span)
    outside = (days < first) | (days > last)
    if outside.any():
        refuse_as_the_core(outside & _is_date(days), array, key_type)
        refuse(outside, days, f"key of type {key_type} must be a date of the years 1 to 9999")
    if key_type.name == "UTC":
        return fold_long(days * (_DAY * 1_000))
    # There are 24 thousand dates in that span: each one is asked for once.
    different, places = np.unique(days, return_inverse=True)
    codes = []
    for day in different.tolist():
        refused = np.zeros(0)
        try:
            codes.append(hash_code((EPOCH + dt.timedelta(day)).date(), key_type))
        except ValueError:
            refused = days == day
        refuse_as_the_core(refused, array, key_type)
    return np.array(codes, dtype=np.int64).astype(np.uint32)[places]


def _is_date(days: Array) -> Array:
    first, last = ((moment - EPOCH).days for moment in (dt.datetime.min, dt.datetime.max))
    return (days >= first) & (days <= last)


def sql_timestamp_codes(array: pa.Array, key_type: types.SQL_TIMESTAMP) -> Codes:
    """java.sql.Timestamp.hashCode of an instant, its epoch millisecond, whatever the zone."""
    takes = "timestamps with a zone: give those without one that of the JVM first"
    check_type(is_timestamp(array, zoned=True), f"key type {key_type}", takes, array)
    seconds, nanos = seconds_and_nanos(array, f"key of type {key_type}")
    first, last = key_type.certain_span
    low, high = (
        (moment.replace(tzinfo=key_type.zone) - UTC_EPOCH) // dt.timedelta(seconds=1)
        for moment in (first, last)
    )
    if seconds.min() < low or seconds.max() > high:
        outside = (seconds < low) | (seconds > high)
        message = (
            f"key of type {key_type} must be from {first.date()} to {last.date()} in its zone"
        )
        refuse(outside, numbers(array), message)
    return fold_long(seconds * 1_000 + nanos // 1_000_000)
