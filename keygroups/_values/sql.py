"""Values of Flink's table runtime, named like its classes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time, timedelta
from typing import Any, NamedTuple

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_int, record_repr, show
from keygroups._values import checks
from keygroups._values.checks import EPOCH
from keygroups._values.java_time import milli_of_day
from keygroups.errors import InvalidValueError

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MAX_DAY = date.max.toordinal()
_DAY_MILLIS = 86_400_000
_MILLI_NANOS = 1_000_000
_MILLISECOND = timedelta(milliseconds=1)


class TimestampData(NamedTuple):
    """A timestamp as Flink SQL has it: milliseconds since the epoch, and nanoseconds above."""

    millisecond: int
    nano_of_millisecond: int


class CountWindow(NamedTuple):
    """A window of a count of rows."""

    id: int


class WindowKey(NamedTuple):
    """A window, which is a time in epoch milliseconds, and a key."""

    window: int
    key: Any

    def __repr__(self) -> str:
        return record_repr(self)


class MetaSqnInfo(NamedTuple):
    """The highest sequence number of a multiset, and its number of rows."""

    high_sqn: int
    size: int


class RowSqnInfo(NamedTuple):
    """The first and last sequence number of a row in a multiset."""

    first_sqn: int
    last_sqn: int


class Node(NamedTuple):
    """A row in a multiset, its sequence number, those of its neighbours, and a timestamp."""

    row: Any
    sqn: int
    prev_sqn: int | None
    next_sqn: int | None
    next_sqn_for_record: int | None
    timestamp: int

    def __repr__(self) -> str:
        return record_repr(self)


def day_of(days: int) -> date | int:
    """Return the date of a day since the epoch, or its number beyond Python's dates."""
    ordinal = days + _EPOCH_DAY
    return date.fromordinal(ordinal) if 1 <= ordinal <= _MAX_DAY else days


def time_of(millis: int) -> time | int:
    """Return the time at a millisecond of the day, or the number if no day has it."""
    if not 0 <= millis < _DAY_MILLIS:
        return millis
    return (EPOCH + timedelta(milliseconds=millis)).time()


def epoch_day(text: str, value: object) -> int:
    """Return the day of a date since the epoch, or an int that is beyond Python's dates."""
    if type(value) is int and type(day_of(value)) is int:
        return check_int(f"key of type {text}", value, INT_MIN, INT_MAX)
    return checks.check_date(text, value).toordinal() - _EPOCH_DAY


def day_millis(text: str, value: object) -> int:
    """Return the millisecond of the day of a time, or an int that no day has."""
    if type(value) is int and type(time_of(value)) is int:
        return check_int(f"key of type {text}", value, INT_MIN, INT_MAX)
    checked = checks.check_time(text, value)
    if checked.microsecond % 1_000:
        raise InvalidValueError(
            f"key of type {text} must be whole milliseconds, got {show(value)}"
        )
    return milli_of_day(checked)


def millis_and_nanos(
    text: str, value: object, since_epoch: Callable[[str, object], timedelta]
) -> tuple[int, int]:
    """Return the epoch milliseconds of a timestamp, and the nanoseconds above them.

    `since_epoch` is that of datetimes, which checks whether they have a zone.
    """
    if isinstance(value, TimestampData):
        return (
            check_int(f"millisecond of a {text}", value[0], LONG_MIN, LONG_MAX),
            check_int(f"nano_of_millisecond of a {text}", value[1], 0, _MILLI_NANOS - 1),
        )
    since = since_epoch(text, value)
    return since // _MILLISECOND, since.microseconds % 1_000 * 1_000
