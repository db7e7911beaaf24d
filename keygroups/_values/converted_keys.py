"""Keys of other classes than that of their key type, as PyFlink's process mode takes them.

Its coders take what C takes for a number, and parts of dates and times, and say nothing of it.
PyFlink: coder_impl_fast, whose bytes are in the tests.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from keygroups._checks import show
from keygroups.errors import InvalidValueError

_NUMBERS = (int, float, Decimal)
_SINGLE = struct.Struct(">f")
_DIGITS = 19  # The largest LONG has so many.


def _as_int(key: Any) -> Any:
    if isinstance(key, Decimal) and key.is_finite() and key.adjusted() > _DIGITS:
        raise OverflowError  # No LONG has so many, and to write them may take all memory.
    return int(key) if isinstance(key, _NUMBERS) else key


def _as_bool(key: Any) -> Any:
    number = _as_int(key)
    return bool(number) if isinstance(number, int) and -128 <= number <= 127 else key


def _as_double(key: Any) -> Any:
    return float(key) if isinstance(key, _NUMBERS) else key


def _as_single(key: Any) -> Any:
    number = _as_double(key)
    if not isinstance(number, float):
        return key
    try:
        [single] = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:  # C makes it infinite.
        single = float("inf") if number > 0 else float("-inf")
    return single


def _as_decimal(key: Any) -> Any:
    return Decimal(str(key)) if type(key) in (int, float, str) else key


def _as_date(key: Any) -> Any:
    return key.date() if isinstance(key, dt.datetime) else key


def _as_time(key: Any) -> Any:
    if isinstance(key, (dt.time, dt.datetime)):
        millis = key.microsecond // 1_000 * 1_000
        return dt.time(key.hour, key.minute, key.second, millis)
    return key


def _as_timestamp(key: Any) -> Any:
    if isinstance(key, dt.datetime):
        return key.replace(microsecond=key.microsecond // 1_000 * 1_000, tzinfo=None)
    return key


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "BOOLEAN": _as_bool,
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG"), _as_int),
    "FLOAT": _as_single,
    "DOUBLE": _as_double,
    "BIG_DEC": _as_decimal,
    "SQL_DATE": _as_date,
    "SQL_TIME": _as_time,
    "SQL_TIMESTAMP": _as_timestamp,
}


def converted(type_name: str, key: Any) -> Any:
    """Return the key that PyFlink makes of one for a type, by the name of that, or the key itself.

    Raises InvalidValueError for a number that PyFlink fails to take, as NaN for a LONG.
    """
    convert = _CONVERSIONS.get(type_name)
    if convert is None:
        return key
    try:
        return convert(key)
    except (InvalidOperation, OverflowError, ValueError):
        raise InvalidValueError(
            f"key of type {type_name} must be a number that PyFlink takes, got {show(key)}"
        ) from None
