"""The hash codes of arrays of one column, by key type; `hash_array` is the way in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from keygroups import types
from keygroups._values.java_lang import DOUBLE_NAN, FLOAT_NAN
from keygroups.arrays import _dates as dates
from keygroups.arrays._kernels import Array, Codes, fold_long
from keygroups.arrays._rows import check_type, limbs, numbers, refuse
from keygroups.arrays._text import string_codes, uuid_codes

Hasher = Callable[[pa.Array], Codes]


def is_text(array: pa.Array) -> bool:
    """Return whether an array has text, of short or long offsets."""
    return array.type in (pa.string(), pa.large_string())


def check_range(array: pa.Array, name: str, bits: int) -> Array:
    """Return integers, which are in the range of a type of so many bits."""
    check_type(pa.types.is_integer(array.type), f"key type {name}", "integers", array)
    values = numbers(array)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    limits = np.iinfo(values.dtype)
    # As Python's ints: NumPy 1 compares its own of 64 bits with others as doubles.
    below = limits.min < low and int(values.min()) < low
    if below or (limits.max > high and int(values.max()) > high):
        outside = values > high
        if below:
            outside |= values < low
        refuse(outside, values, f"key of type {name} must be from {low} to {high}")
    return values


def _integer_codes(name: str, bits: int, array: pa.Array) -> Codes:
    values = check_range(array, name, bits)
    if bits == 64:
        return fold_long(values.astype(np.int64, copy=False))
    return values.view(np.uint32) if values.itemsize == 4 else values.astype(np.uint32)


def _boolean_codes(array: pa.Array) -> Codes:
    check_type(pa.types.is_boolean(array.type), "key type BOOLEAN", "booleans", array)
    found = array.to_numpy(zero_copy_only=False)
    return np.where(found, np.uint32(1231), np.uint32(1237))


def singles(array: pa.Array, what: str, raw: bool) -> Array:
    """Return singles, given as such or as doubles that are singles exactly.

    Where `raw`, that goes for the bits of a NaN too.
    """
    check_type(array.type in (pa.float32(), pa.float64()), what, "float32 or float64", array)
    values = numbers(array)
    if values.itemsize == 4:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.astype(np.float32)
        other = found.astype(np.float64).view(np.uint64) != values.view(np.uint64)
    if not raw:
        other &= values == values
    refuse(other, values, f"{what} must be single-precision numbers")
    return found


def single_bits(values: Array, raw: bool) -> Codes:
    """Return the bits of singles; where not raw, of one NaN only."""
    bits = values.view(np.uint32)
    nan = values != values
    return np.where(nan, np.uint32(FLOAT_NAN), bits) if not raw and nan.any() else bits


def _double_codes(array: pa.Array) -> Codes:
    return fold_long(double_bits(doubles(array, "key type DOUBLE"), raw=False))


def doubles(array: pa.Array, what: str) -> Array:
    """Return doubles."""
    check_type(array.type == pa.float64(), what, "float64", array)
    return numbers(array)


def double_bits(values: Array, raw: bool) -> Array:
    """Return the bits of doubles; where not raw, of one NaN only."""
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


def _decimal_codes(array: pa.Array) -> Codes:
    """BigDecimal.hashCode: the 31-fold of the words of the magnitude, with the sign and scale."""
    check_type(pa.types.is_decimal(array.type), "key type BIG_DEC", "decimals", array)
    words, scale = limbs(array)
    negative = words[:, -1] >> np.uint64(63) != 0
    invert = np.where(negative, np.uint64(2**64 - 1), np.uint64(0))
    carry = negative.astype(np.uint64)
    code = np.zeros(len(array), dtype=np.uint32)
    power = np.uint32(1)
    for column in range(words.shape[1]):
        limb = (words[:, column] ^ invert) + carry
        carry &= (limb == 0).astype(np.uint64)
        code += (limb & np.uint64(0xFFFFFFFF)).astype(np.uint32) * power
        power = np.uint32(int(power) * 31 % 2**32)
        code += (limb >> np.uint64(32)).astype(np.uint32) * power
        power = np.uint32(int(power) * 31 % 2**32)
    code = np.where(negative, np.uint32(0) - code, code)
    return code * np.uint32(31) + np.uint32(scale % 2**32)


_WIDTHS = {types.BYTE: 8, types.SHORT: 16, types.INT: 32, types.LONG: 64}
HASHERS: dict[types.KeyType, Hasher] = {
    **{one: partial(_integer_codes, repr(one), bits) for one, bits in _WIDTHS.items()},
    types.BOOLEAN: _boolean_codes,
    types.FLOAT: lambda array: single_bits(singles(array, "key type FLOAT", raw=False), raw=False),
    types.DOUBLE: _double_codes,
    types.STRING: _string_codes,
    types.UUID: _uuid_codes,
    types.BIG_DEC: _decimal_codes,
    types.LOCAL_DATE: dates.date_codes,
    types.LOCAL_TIME: dates.time_codes,
    types.LOCAL_DATE_TIME: dates.date_time_codes,
    types.INSTANT: dates.instant_codes,
}
"""What hashes the values of each scalar key type, none of them null and at least one."""
