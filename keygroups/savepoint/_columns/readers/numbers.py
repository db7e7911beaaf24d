"""Readers of numbers, dates and times: as they are written, and as Arrow has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._checks import INT_MIN, LONG_MIN
from keygroups._values.checks import EPOCH
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    ReadColumn,
    check,
    numbers_at,
    octets_at,
)

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = 1 - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_MILLI = (datetime.min - EPOCH) // _MILLISECOND
_LAST_MILLI = (datetime.max - EPOCH) // _MILLISECOND
_MILLI_NANOS = 1_000_000
_SECOND_NANOS = 1_000_000_000
_BYTE_MIN = -(2**7)
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)

MakeArray = Callable[[NDArray[Any]], pa.Array]


class Numbers(NamedTuple):
    """Numbers of a type, and the function from them to an array; it refuses what it may change."""

    written: str
    make: MakeArray

    def at(self, data: bytes, pos: Ints) -> pa.Array:
        """Return the array of the numbers that start somewhere."""
        return self.make(numbers_at(data, pos, np.dtype(self.written)))

    def of_bytes(self, data: bytes) -> pa.Array:
        """Return the array of numbers that follow one another."""
        return self.make(np.frombuffer(data, self.written))

    @property
    def size(self) -> int:
        """The bytes of each."""
        return np.dtype(self.written).itemsize

    @property
    def read(self) -> ReadColumn:
        """The reader of a column."""
        at, size = self.at, self.size
        return lambda data, pos: (at(data, pos), pos + size)


def plain(own: str) -> MakeArray:
    """Return the function to numbers as NumPy has them, or Arrow as bits."""
    return lambda numbers: pa.array(numbers.astype(own))


def truths(numbers: NDArray[Any]) -> pa.Array:
    """Return whether each byte is not 0."""
    return pa.array(numbers != 0)


def unflipped(numbers: NDArray[Any]) -> pa.Array:
    """Return longs whose sign bit was flipped."""
    return pa.array(numbers.astype(np.int64) ^ np.int64(LONG_MIN))


def days(numbers: NDArray[Any]) -> pa.Array:
    """Return dates of days since the epoch."""
    check((numbers >= _FIRST_DAY).all() and (numbers <= _LAST_DAY).all())
    return pa.array(numbers.astype(np.int32)).cast(pa.date32())


def instants(zone: str | None) -> MakeArray:
    """Return the function from epoch milliseconds to timestamps."""
    data_type = pa.timestamp("us", zone)

    def make(numbers: NDArray[Any]) -> pa.Array:
        check_millis(numbers)
        return pa.array(numbers.astype(np.int64) * 1_000).cast(data_type)

    return make


def check_millis(numbers: NDArray[Any]) -> None:
    """Raise ValueError for epoch milliseconds beyond Python's years."""
    check((numbers >= _FIRST_MILLI).all() and (numbers <= _LAST_MILLI).all())


def nullable_instants(numbers: NDArray[Any]) -> pa.Array:
    """Return timestamps of epoch milliseconds, of which the least stands for null."""
    is_null = numbers == LONG_MIN
    millis = np.where(is_null, 0, numbers)
    check_millis(millis)
    return pa.array(millis * 1_000, mask=is_null).cast(pa.timestamp("us", "UTC"))


def fine_timestamps(
    millis: NDArray[Any], nanos: NDArray[Any], zone: str | None, is_fine: bool
) -> pa.Array:
    """Return timestamps of epoch milliseconds and the nanoseconds above them.

    Those that `is_fine` have a field for each, as no timestamp of Arrow has all of them.
    """
    check((nanos >= 0).all() and (nanos < _MILLI_NANOS).all())
    if is_fine:
        fields = [pa.array(millis.astype(np.int64)), pa.array(nanos.astype(np.int32))]
        return pa.StructArray.from_arrays(fields, ["millisecond", "nano_of_millisecond"])
    check_millis(millis)
    micros, rest = np.divmod(nanos.astype(np.int64), 1_000)
    check(not rest.any())
    return pa.array(millis.astype(np.int64) * 1_000 + micros).cast(pa.timestamp("us", zone))


def constants(names: Sequence[str]) -> MakeArray:
    """Return the function from the indices of names to the names."""

    def make(numbers: NDArray[Any]) -> pa.Array:
        # Arrow raises an IndexError for an index of none.
        return pa.array(names, pa.string()).take(pa.array(numbers.astype(np.int32)))

    return make


# --- java.time ---------------------------------------------------------------------------


def read_local_dates(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read LocalDates: year, month, day."""
    is_null, numbers = _local_days(data, pos)
    return pa.array(numbers.astype(np.int32), mask=is_null).cast(pa.date32()), pos + 6


def read_local_times(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read LocalTimes: hour, minute, second, nanoseconds."""
    is_null, nanos = _local_nanos(data, pos)
    return pa.array(nanos, mask=is_null), pos + 7


def read_local_date_times(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read LocalDateTimes: a LocalDate, and a LocalTime."""
    is_null, numbers = _local_days(data, pos)
    has_no_time, nanos = _local_nanos(data, pos + 6)
    micros, rest = np.divmod(nanos, 1_000)
    check((is_null == has_no_time).all() and not rest.any())
    array = pa.array(numbers * 86_400_000_000 + micros, mask=is_null)
    return array.cast(pa.timestamp("us")), pos + 13


def _local_days(data: bytes, pos: Ints) -> tuple[Any, Ints]:
    """Return a mask of the dates that are null, and the days since the epoch of the others."""
    years = numbers_at(data, pos, np.dtype(">i4")).astype(np.int64)
    months, month_days = (octets_at(data, pos + at).astype(np.int64) for at in (4, 5))
    is_null = years == INT_MIN
    years, months, month_days = (
        np.where(is_null, instead, numbers)
        for instead, numbers in ((1970, years), (1, months), (1, month_days))
    )
    check((years >= 1).all() and (years <= 9999).all())
    check((months >= 1).all() and (months <= 12).all() and (month_days >= 1).all())
    is_leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    check((month_days <= _MONTH_DAYS[months] + (is_leap & (months == 2))).all())
    # A year that starts in March has its leap day at its end.
    shifted = years - (months <= 2)
    of_year = (153 * ((months + 9) % 12) + 2) // 5 + month_days - 1
    of_era = shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400
    return is_null, of_era + of_year - 719_468


def _local_nanos(data: bytes, pos: Ints) -> tuple[Any, Ints]:
    """Return a mask of the times that are null, and the nanoseconds of the day of the others."""
    hours, minutes, seconds = (
        numbers_at(data, pos + at, np.dtype("i1")).astype(np.int64) for at in (0, 1, 2)
    )
    nanos = numbers_at(data, pos + 3, np.dtype(">i4")).astype(np.int64)
    is_null = hours == _BYTE_MIN
    for numbers, bound in ((hours, 24), (minutes, 60), (seconds, 60), (nanos, _SECOND_NANOS)):
        check((is_null | ((numbers >= 0) & (numbers < bound))).all())
    of_day = ((hours * 60 + minutes) * 60 + seconds) * _SECOND_NANOS + nanos
    return is_null, np.where(is_null, 0, of_day)


def read_instants(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read Instants: epoch seconds, and nanoseconds."""
    seconds = numbers_at(data, pos, np.dtype(">i8")).astype(np.int64)
    nanos = numbers_at(data, pos + 8, np.dtype(">i4")).astype(np.int64)
    is_null = (seconds == LONG_MIN) & (nanos == INT_MIN)
    return _of_seconds(seconds, nanos, is_null), pos + 12


def read_sql_timestamps(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read java.sql.Timestamps: epoch milliseconds, and the nanoseconds of the second."""
    millis = numbers_at(data, pos, np.dtype(">i8")).astype(np.int64)
    nanos = numbers_at(data, pos + 8, np.dtype(">i4")).astype(np.int64)
    return _of_seconds(millis // 1_000, nanos, millis == LONG_MIN), pos + 12


def _of_seconds(seconds: Ints, nanos: Ints, is_null: Any) -> pa.Array:
    seconds, nanos = np.where(is_null, 0, seconds), np.where(is_null, 0, nanos)
    check((nanos >= 0).all() and (nanos < _SECOND_NANOS).all())
    check((seconds >= _FIRST_MILLI // 1_000).all() and (seconds <= _LAST_MILLI // 1_000).all())
    micros, rest = np.divmod(nanos, 1_000)
    check(not rest.any())
    array = pa.array(seconds * 1_000_000 + micros, mask=is_null)
    return array.cast(pa.timestamp("us", "UTC"))
