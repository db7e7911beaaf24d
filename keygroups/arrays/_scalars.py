"""The hash codes of arrays of one column, by key type; `hash_array` is the way in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from keygroups import types
from keygroups._checks import INT_MAX, INT_MIN
from keygroups._values.checks import EPOCH, UTC_EPOCH
from keygroups._values.java_lang import DOUBLE_NAN, FLOAT_NAN
from keygroups.arrays._kernels import Array, Codes, Nulls, choose, fold_long, powers_of_31
from keygroups.arrays._rows import (
    bools,
    check_type,
    is_timestamp,
    limbs,
    numbers,
    refuse,
    refuse_as_the_core,
)
from keygroups.arrays._text import byte_buffer_codes, string_codes, uuid_codes
from keygroups.hashing import hash_code

ColumnHasher = Callable[[pa.Array], Codes]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_MOST_SECONDS = 2**31 * _DAY  # seconds on either side of 1970, in the days that 32 bits count


def is_text(array: pa.Array) -> bool:
    """Return whether an array has text, with offsets of 32 or 64 bits."""
    return array.type in (pa.string(), pa.large_string())


def check_range(array: pa.Array, name: str, bits: int) -> Array:
    """Return integers, after checking that each is a signed one of `bits` bits."""
    check_type(pa.types.is_integer(array.type), f"key type {name}", "integers", array)
    values = numbers(array)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if values.dtype != f"i{bits // 8}":  # Else none is outside.
        outside = (values < low) | (values > high)
        refuse(outside, values, f"key of type {name} must be from {low} to {high}")
    return values


def _integer_codes(name: str, bits: int, array: pa.Array) -> Codes:
    values = check_range(array, name, bits)
    if bits == 64:
        return fold_long(values.astype(np.int64, copy=False))
    return values.view(np.uint32) if values.itemsize == 4 else values.astype(np.uint32)


def _boolean_codes(array: pa.Array) -> Codes:
    check_type(pa.types.is_boolean(array.type), "key type BOOLEAN", "booleans", array)
    flags = bools(array)
    return np.where(flags, np.uint32(1231), np.uint32(1237))


def singles(array: pa.Array, type_name: str, raw: bool) -> Array:
    """Return float32 values; float64 ones must be singles exactly.

    Where `raw`, the bits of a NaN have to be kept too.
    """
    check_type(array.type in (pa.float32(), pa.float64()), type_name, "float32 or float64", array)
    values = numbers(array)
    if values.itemsize == 4:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float32)
        other = rounded.astype(np.float64).view(np.uint64) != values.view(np.uint64)
    if not raw:
        other &= values == values
    refuse(other, values, f"{type_name} must be single-precision numbers")
    return rounded


def single_bits(values: Array, raw: bool) -> Codes:
    """Return the bits of singles; where not raw, all NaNs have those of Java's canonical one."""
    bits = values.view(np.uint32)
    nan = values != values
    return np.where(nan, np.uint32(FLOAT_NAN), bits) if not raw and nan.any() else bits


def _double_codes(array: pa.Array) -> Codes:
    return fold_long(double_bits(doubles(array, "key type DOUBLE"), raw=False))


def doubles(array: pa.Array, type_name: str) -> Array:
    """Return the values of an array, which has to be of float64."""
    check_type(array.type == pa.float64(), type_name, "float64", array)
    return numbers(array)


def double_bits(values: Array, raw: bool) -> Array:
    """Return the bits of doubles; where not raw, all NaNs have those of Java's canonical one."""
    bits = values.view(np.uint64)
    if raw:
        return bits
    nan = np.isnan(values)
    return np.where(nan, np.uint64(DOUBLE_NAN), bits) if nan.any() else bits


def _string_codes(array: pa.Array) -> Codes:
    check_type(is_text(array), "key type STRING", "text", array)
    return string_codes(array)


def _uuid_codes(array: pa.Array) -> Codes:
    check_type(is_text(array), "key type UUID", "canonical text", array)
    return uuid_codes(array)


def _byte_buffer_codes(array: pa.Array) -> Codes:
    is_binary = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)
    check_type(is_binary, "key type BYTE_BUFFER", "binaries", array)
    return byte_buffer_codes(array)


def _decimal_codes(array: pa.Array) -> Codes:
    """Return BigDecimal.hashCode: 31 * sign * fold + scale.

    BigInteger folds the 32-bit words of the magnitude by 31 from the highest one, here from the
    lowest with growing powers. The magnitude of a negative number is its inverted bits plus 1.
    """
    check_type(pa.types.is_decimal(array.type), "key type BIG_DEC", "decimals", array)
    words, scale = limbs(array)
    negative = words[:, -1] >> np.uint64(63) != 0
    invert = np.where(negative, np.uint64(2**64 - 1), np.uint64(0))
    carry = negative.astype(np.uint64)
    code = np.zeros(len(array), dtype=np.uint32)
    powers = powers_of_31(np.arange(2 * words.shape[1]))
    for column in range(words.shape[1]):
        limb = (words[:, column] ^ invert) + carry
        carry &= (limb == 0).astype(np.uint64)
        code += limb.astype(np.uint32) * powers[2 * column]
        code += (limb >> np.uint64(32)).astype(np.uint32) * powers[2 * column + 1]
    code = np.where(negative, np.uint32(0) - code, code)
    return code * np.uint32(31) + np.uint32(scale % 2**32)


def _date_codes(array: pa.Array) -> Codes:
    """Return LocalDate.hashCode of dates."""
    check_type(pa.types.is_date32(array.type), "key type LOCAL_DATE", "dates (date32)", array)
    return _of_days(numbers(array).astype(np.int64))


def _of_days(days: Array) -> Codes:
    """Return LocalDate.hashCode by the days since 1970, in the proleptic Gregorian calendar.

    Years are counted from March: then the leap day is a year's last one, and months have a
    formula. Day 11016 (2000-02-29) is day 146096 of the era that began on 1600-03-01: the last
    day of its last year.
    """
    era, day = np.divmod(days + 719_468, 146_097)  # eras of 400 years since 0000-03-01
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += np.where(month < 10, 3, -9)
    year += era * 400 + (month <= 2)
    code: Codes = ((year & ~0x7FF) ^ ((year << 11) + (month << 6) + day)).astype(np.uint32)
    return code


def seconds_and_nanos(array: pa.Array, name: object) -> tuple[Array, Array]:
    """Return timestamps as floored seconds since 1970 and the nanoseconds above them."""
    per_second = _PER_SECOND[array.type.unit]
    values = numbers(array)
    seconds = values // per_second
    far = (seconds < -_MOST_SECONDS) | (seconds >= _MOST_SECONDS)
    refuse(far, values, f"{name} must be within 2^31 days of 1970")
    return seconds, (values - seconds * per_second) * (10**9 // per_second)


def nano_of_day(array: pa.Array, type_name: str, name: str) -> Array:
    """Return times as nanoseconds since midnight."""
    check_type(pa.types.is_time(array.type), type_name, "times (time32, time64)", array)
    values = numbers(array)
    per_second = _PER_SECOND[array.type.unit]
    outside = (values < 0) | (values >= _DAY * per_second)
    refuse(outside, values, f"{name} must be from midnight up to the next one")
    nanos: Array = values.astype(np.int64) * (10**9 // per_second)
    return nanos


def _time_codes(array: pa.Array) -> Codes:
    """Return LocalTime.hashCode of times."""
    return fold_long(nano_of_day(array, "key type LOCAL_TIME", "key of type LOCAL_TIME"))


def _date_time_codes(array: pa.Array) -> Codes:
    """Return LocalDateTime.hashCode of timestamps: that of the date xor that of the time."""
    right = is_timestamp(array, zoned=False)
    check_type(right, "key type LOCAL_DATE_TIME", "timestamps without a zone", array)
    seconds, nanos = seconds_and_nanos(array, "key of type LOCAL_DATE_TIME")
    days = seconds // _DAY
    return _of_days(days) ^ fold_long((seconds - days * _DAY) * 10**9 + nanos)


def _instant_codes(array: pa.Array) -> Codes:
    """Return Instant.hashCode of timestamps."""
    right = is_timestamp(array, zoned=True)
    check_type(right, "key type INSTANT", "timestamps with a zone", array)
    seconds, nanos = seconds_and_nanos(array, "key of type INSTANT")
    return fold_long(seconds) + (nanos * 51).astype(np.uint32)


def sql_date_codes(array: pa.Array, key_type: types.SQL_DATE) -> Codes:
    """Return java.sql.Date.hashCode of dates: that of local midnight's epoch millisecond."""
    check_type(pa.types.is_date32(array.type), f"key type {key_type}", "dates (date32)", array)
    days = numbers(array).astype(np.int64)
    first, last = ((moment - EPOCH).days for moment in key_type.certain_span)
    outside = (days < first) | (days > last)
    if outside.any():
        refuse_as_the_core(outside & _is_date(days), array, key_type)
        refuse(outside, days, f"key of type {key_type} must be a date of the years 1 to 9999")
    if key_type.name == "UTC":
        return fold_long(days * (_DAY * 1_000))
    # The certain span has at most 24 thousand dates: the core hashes each of them once.
    different, places = np.unique(days, return_inverse=True)
    codes = []
    for day in different.tolist():
        try:
            codes.append(hash_code((EPOCH + dt.timedelta(day)).date(), key_type))
        except ValueError:
            refuse_as_the_core(days == day, array, key_type)
    return np.array(codes, dtype=np.int64).astype(np.uint32)[places]


def _is_date(days: Array) -> Array:
    first, last = ((moment - EPOCH).days for moment in (dt.datetime.min, dt.datetime.max))
    return (days >= first) & (days <= last)


def sql_timestamp_codes(array: pa.Array, key_type: types.SQL_TIMESTAMP) -> Codes:
    """Return java.sql.Timestamp.hashCode of instants: by the epoch millisecond, in any zone."""
    takes = "timestamps with a zone: give those without one that of the JVM first"
    check_type(is_timestamp(array, zoned=True), f"key type {key_type}", takes, array)
    seconds, nanos = seconds_and_nanos(array, f"key of type {key_type}")
    first, last = key_type.certain_span
    low, high = (
        (moment.replace(tzinfo=key_type.zone) - UTC_EPOCH) // dt.timedelta(seconds=1)
        for moment in (first, last)
    )
    outside = (seconds < low) | (seconds > high)
    message = f"key of type {key_type} must be from {first.date()} to {last.date()} in its zone"
    refuse(outside, numbers(array), message)
    return fold_long(seconds * 1_000 + nanos // 1_000_000)


# --- the numbers of Scala -----------------------------------------------------------------


def _are_within_ints(values: Array) -> bool:
    return bool(values.min() >= INT_MIN and values.max() <= INT_MAX)  # A NaN is not.


def _scala_long_codes(array: pa.Array) -> Codes:
    """Return `##` of longs: the value where it is an Int's, else Java's hash code."""
    return _whole_codes(check_range(array, "LONG", 64).astype(np.int64, copy=False))


def _whole_codes(values: Array) -> Codes:
    low = values.astype(np.uint32)
    # The first value tells cheaply whether a look at all of them is worth it.
    if INT_MIN <= values[0] <= INT_MAX and _are_within_ints(values):
        return low
    codes = fold_long(values)
    folded_int = low ^ (low.view(np.int32) >> 31).view(np.uint32)
    is_int = codes == folded_int
    return choose(is_int, low, codes) if is_int.any() else codes


def _scala_double_codes(array: pa.Array) -> Codes:
    """Return `##` of doubles: the code of the first of Int, Long, Float, Double that equals it."""
    values = doubles(array, "key type DOUBLE")
    within_ints = _are_within_ints(values)
    low = values.view(np.uint64).astype(np.uint32)
    # The bits of an Int as a double end in 22 zeros at least, and those of a single in 29.
    if within_ints and np.left_shift(low, 10).min():
        return fold_long(values)
    if not within_ints and (longs := _to_longs(values)) is not None:
        return _whole_codes(longs)
    ints, is_int = _to_ints(values)
    if is_int.all():
        return ints
    is_short = np.left_shift(low, 3) == 0
    if is_short.all() and (rounded := _to_singles(values))[1].all():
        codes = rounded[0]
    else:
        codes = fold_long(values if within_ints else double_bits(values, raw=False))
        if (is_short > is_int).any():
            singles, is_single = _to_singles(values)
            codes = choose(is_single, singles, codes)
    return _with_whole(values, within_ints, ints, is_int, codes)


def _scala_float_codes(array: pa.Array) -> Codes:
    """Return `##` of floats: the code of the first of Int, Long and Float that equals it."""
    values = singles(array, "key type FLOAT", raw=False)
    ints, is_int = _to_ints(values)
    if is_int.all():
        return ints
    bits = single_bits(values, raw=False)
    codes = _with_whole(values, _are_within_ints(values), ints, is_int, bits)
    is_most = values == 2.0**31  # Int.MaxValue equals it as a Float.
    return choose(is_most, INT_MAX, codes) if is_most.any() else codes


def _to_ints(values: Array) -> tuple[Codes, Nulls]:
    """Return floating-point numbers as Ints, and a mask of the equal ones."""
    with np.errstate(invalid="ignore"):
        ints = values.astype(np.int32)
    return ints.view(np.uint32), ints.astype(values.dtype) == values


def _to_longs(values: Array) -> Array | None:
    """Return doubles as Longs if these equal them; 2^63, which equals none, is not one here."""
    with np.errstate(invalid="ignore"):
        first = values[:8]  # These tell cheaply whether a look at all of them is worth it.
        if not (np.trunc(first) == first).all():
            return None
        longs = values.astype(np.int64)
    return longs if (longs.astype(np.float64) == values).all() else None


def _to_singles(values: Array) -> tuple[Codes, Nulls]:
    """Return the bits of doubles as Floats, and a mask of the equal ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float32)
    return rounded.view(np.uint32), rounded.astype(np.float64) == values


def _with_whole(
    values: Array, within_ints: bool, ints: Codes, is_int: Nulls, codes: Codes
) -> Codes:
    """Return codes with those of whole numbers in place; 2^63 equals Long.MaxValue."""
    if not within_ints:
        with np.errstate(invalid="ignore"):
            is_long = (np.trunc(values) == values) & (np.abs(values) <= 2.0**63)
            # 2^63 becomes the least Long or the largest one, whose hash codes are one.
            longs = values.astype(np.int64)
        codes = choose(is_long, fold_long(longs), codes)
    return choose(is_int, ints, codes) if is_int.any() else codes


_WIDTHS = {types.BYTE: 8, types.SHORT: 16, types.INT: 32, types.LONG: 64}
HASHERS: dict[types.KeyType, ColumnHasher] = {
    **{kt: partial(_integer_codes, repr(kt), bits) for kt, bits in _WIDTHS.items()},
    types.BOOLEAN: _boolean_codes,
    types.FLOAT: lambda array: single_bits(singles(array, "key type FLOAT", raw=False), raw=False),
    types.DOUBLE: _double_codes,
    types.STRING: _string_codes,
    types.UUID: _uuid_codes,
    types.BIG_DEC: _decimal_codes,
    types.LOCAL_DATE: _date_codes,
    types.LOCAL_TIME: _time_codes,
    types.LOCAL_DATE_TIME: _date_time_codes,
    types.INSTANT: _instant_codes,
    types.BYTE_BUFFER: _byte_buffer_codes,
    types.HASHED: partial(_integer_codes, "HASHED", 32),
}
"""Hashers by scalar key type; each takes one value or more, none of them null."""

SCALA_HASHERS: dict[types.KeyType, ColumnHasher] = {
    types.LONG: _scala_long_codes,
    types.FLOAT: _scala_float_codes,
    types.DOUBLE: _scala_double_codes,
}
"""Hashers of the key types whose `##` in Scala differs from hashCode."""

INFERRED: tuple[tuple[Callable[[pa.DataType], bool], types.KeyType], ...] = (
    (pa.types.is_null, types.NULL),
    (pa.types.is_boolean, types.BOOLEAN),
    (pa.types.is_float64, types.DOUBLE),
    (pa.types.is_string, types.STRING),
    (pa.types.is_large_string, types.STRING),
    (pa.types.is_decimal, types.BIG_DEC),
    (pa.types.is_date32, types.LOCAL_DATE),
    (pa.types.is_time, types.LOCAL_TIME),
    (lambda dtype: pa.types.is_timestamp(dtype) and dtype.tz is None, types.LOCAL_DATE_TIME),
    (lambda dtype: pa.types.is_timestamp(dtype) and dtype.tz is not None, types.INSTANT),
)
"""Arrow types, by predicate, that stand for one scalar key type; integers go by value."""
