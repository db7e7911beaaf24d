"""Values of Java's own classes that only Kryo writes."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from keygroups._checks import record_repr


class Duration(NamedTuple):
    """A Duration beyond Python's timedelta: its seconds, and the nanoseconds above."""

    seconds: int
    nano: int


class Period(NamedTuple):
    """A Period of the calendar."""

    years: int
    months: int
    days: int


class YearMonth(NamedTuple):
    """A month of a year."""

    year: int
    month: int


class MonthDay(NamedTuple):
    """A day of any year."""

    month: int
    day: int


class OffsetTime(NamedTuple):
    """A time of day as LocalTime has it, and the seconds that it is ahead of UTC."""

    local_time: Any
    offset: int

    def __repr__(self) -> str:
        return record_repr(self)


class OffsetDateTime(NamedTuple):
    """A date and time as LocalDateTime has it, and the seconds that it is ahead of UTC."""

    local_date_time: Any
    offset: int

    def __repr__(self) -> str:
        return record_repr(self)


class ZonedDateTime(NamedTuple):
    """A date and time as LocalDateTime has it, and its zone.

    `offset` is the seconds that it is ahead of UTC; Kryo 5 does not write it, then it is None.
    """

    local_date_time: Any
    offset: int | None
    zone: str

    def __repr__(self) -> str:
        return record_repr(self)


class Locale(NamedTuple):
    """A Locale. Kryo 5 writes neither script nor extensions."""

    language: str
    country: str
    variant: str
    script: str = ""
    extensions: str = ""


class Calendar(NamedTuple):
    """A GregorianCalendar: its moments are datetimes in UTC, or epoch milliseconds."""

    time: dt.datetime | int
    time_zone: str
    is_lenient: bool
    first_day_of_week: int
    minimal_days_in_first_week: int
    gregorian_change: dt.datetime | int
