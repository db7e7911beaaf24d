"""The serializers of texts, numbers, dates and times of PyFlink's SQL functions.

Dates and times are those of the zone of Flink's JVM, which no byte names; so they have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, time
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any

from keygroups import types as kt
from keygroups._checks import INT_MAX, INT_MIN, check_class, check_int, show
from keygroups._serializers.base import TABLE, Read, Simple, class_of
from keygroups._serializers.scalars import (
    StringDataSerializer,
    pack_int,
    read_bytes,
    read_int,
    write_bytes,
)
from keygroups._serializers.sql.rows import DecimalDataSerializer, TimestampDataSerializer
from keygroups._serializers.value_checks import check_value
from keygroups._values.checks import check_date, check_time
from keygroups._values.java_time import milli_of_day
from keygroups._values.sql import day_of, time_of
from keygroups.errors import InvalidValueError

PYTHON = f"{TABLE}serializers.python."

_DAY_MILLIS = 86_400_000
_TIMESTAMPS = range(-62_135_596_800_000, (INT_MAX + 1) * _DAY_MILLIS)  # milliseconds
_SKIPPED = range(-12_220_156_800_000, -12_219_292_800_000)  # 5 to 14 October 1582
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_IN_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?(E[+-][0-9]{1,10})?")
_AS_JAVA = Context(capitals=1)  # The caller's own context may write a small "e".


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
    """Write a BigDecimal as its text; Python's to-scientific-string is the rule of Java.

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
    """A java.sql.Date: its day since the epoch, which stays an int beyond Python's dates."""

    name, snapshot, size = "PYTHON_DATE", class_of(PYTHON, "Date"), 4

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[date | int, int]:
        days, pos = read_int(data, pos)
        return day_of(days), pos

    @staticmethod
    def write(value: object) -> bytes:
        if isinstance(value, date):
            return pack_int(check_date("PYTHON_DATE", value).toordinal() - _EPOCH_DAY)
        return pack_int(
            check_int("PYTHON_DATE, a date or a day's number,", value, INT_MIN, INT_MAX)
        )


class PythonTimeSerializer(Simple):
    """A java.sql.Time: the millisecond of the day; a number that no day has is read as an int."""

    name, snapshot, size = "PYTHON_TIME", class_of(PYTHON, "Time"), 4

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[time | int, int]:
        millis, pos = read_int(data, pos)
        return time_of(millis), pos

    @staticmethod
    def write(value: object) -> bytes:
        name = "PYTHON_TIME"
        if not isinstance(value, time):
            most = _DAY_MILLIS - 1
            return pack_int(check_int(f"{name}, a time or milliseconds,", value, 0, most))
        checked = check_time(name, value)
        if checked.microsecond % 1_000:
            raise InvalidValueError(f"{name} must be whole milliseconds, got {show(value)}")
        return pack_int(milli_of_day(checked))


class PythonDecimalSerializer(DecimalDataSerializer):
    """A DECIMAL, as text with all its fraction digits."""

    name, versions = "PYTHON_DECIMAL", (1,)
    snapshot = f"{PYTHON}DecimalDataSerializer$DecimalSerializerSnapshot"

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


class PythonTimestampSerializer(TimestampDataSerializer):
    """A java.sql.Timestamp: milliseconds; with more than 3 digits, nanoseconds above them.

    Its calendar confuses years before 1 with later ones, and skips ten days of 1582; Flink counts
    days as an int. Beyond these bounds Flink reads other timestamps than it wrote.
    """

    name, snapshot = "PYTHON_TIMESTAMP", class_of(PYTHON, "Timestamp")

    def converter(self) -> Callable[[Any], tuple[int, int]]:
        """Return the converter of the base class, which refuses timestamps beyond these bounds."""
        convert, name = super().converter(), self.name

        def convert_and_check(value: Any) -> tuple[int, int]:
            millis, nanos = convert(value)
            if millis not in _TIMESTAMPS or millis in _SKIPPED:
                raise InvalidValueError(
                    f"{name} must be from the year 1 to day {INT_MAX} of the epoch, and none of "
                    f"1582-10-05 to 14, got {show(value)}"
                )
            return millis, nanos

        return convert_and_check
