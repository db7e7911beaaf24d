"""Readers of decimals, and of BigIntegers and BigDecimals, whose columns are text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups.savepoint._columns.readers.numbers import MakeArray
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    check,
    check_apart,
    numbers_at,
    spread,
)

_WIDE = 16  # bytes of a decimal of Arrow
_DIGITS = 38
_INT = np.dtype(">i4")
_SMALL = np.array([0, 0, 1, 10], np.int64)  # the numbers with the codes 1, 2 and 3
_FIRST_LENGTH = 4


def decimals(precision: int, scale: int) -> MakeArray:
    """Return the function from unscaled values of 64 bits to decimals."""
    limit, data_type = 10**precision, pa.decimal128(precision, scale)

    def make(numbers: NDArray[Any]) -> pa.Array:
        low = numbers.astype(np.int64)
        check((low > -limit).all() and (low < limit).all())
        return _of_halves(low >> 63, low, data_type)

    return make


def wide_decimals(data: bytes, starts: Ints, ends: Ints, precision: int, scale: int) -> pa.Array:
    """Return decimals of unscaled values of 1 to 16 bytes, high byte first."""
    high, low = _halves(data, starts, ends)
    _check_digits(high, low, precision)
    return _of_halves(high, low, pa.decimal128(precision, scale))


def _halves(data: bytes, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return numbers of 1 to 16 bytes as their high and low 64 bits."""
    sizes = ends - starts
    check((sizes > 0).all() and (sizes <= _WIDE).all())
    octets = np.frombuffer(data, np.uint8)
    sign = np.where(octets[starts] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if ends.min() < _WIDE:  # there have to be as many bytes before each end
        octets, ends = np.concatenate([np.zeros(_WIDE, np.uint8), octets]), ends + _WIDE
    words = np.lib.stride_tricks.sliding_window_view(octets, _WIDE)[ends - _WIDE]
    np.copyto(words, sign[:, None], where=np.arange(_WIDE) < (_WIDE - sizes)[:, None])
    halves = words.view(">i8").astype(np.int64)
    return halves[:, 0], halves[:, 1]


def _check_digits(high: Ints, low: Ints, digits: int) -> None:
    """Raise ValueError for a number of more digits."""
    limit, unsigned = 10**digits, low.view(np.uint64)
    above_high, above_low = limit >> 64, np.uint64(limit & 0xFFFFFFFFFFFFFFFF)
    below_high, below_low = -limit >> 64, np.uint64(-limit & 0xFFFFFFFFFFFFFFFF)
    check(((high < above_high) | ((high == above_high) & (unsigned < above_low))).all())
    check(((high > below_high) | ((high == below_high) & (unsigned > below_low))).all())


def _of_halves(high: Ints, low: Ints, data_type: pa.DataType) -> pa.Array:
    words = np.empty((len(low), 2), "<i8")
    words[:, 0], words[:, 1] = low, high
    return pa.Array.from_buffers(data_type, len(low), [None, pa.py_buffer(words)])


def read_big_ints(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read BigIntegers: a code, and behind that of a length the bytes of a number.

    Those of more than 38 digits are left to the reader of single values.
    """
    is_present, high, low, ends = _big_numbers(data, pos)
    texts = _of_halves(high, low, pa.decimal128(_DIGITS, 0)).cast(pa.string())
    return spread(texts, is_present), ends


def read_big_decs(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read BigDecimals: unscaled values as BigIntegers, and scales behind those there are."""
    is_present, high, low, ends = _big_numbers(data, pos)
    scales = numbers_at(data, ends[is_present], _INT)
    ends = ends + 4 * is_present
    check((scales >= 0).all() and (scales <= _DIGITS).all())
    texts = np.empty(len(scales), object)
    for scale in np.unique(scales).tolist():
        here = scales == scale
        some = _of_halves(high[here], low[here], pa.decimal128(_DIGITS, scale))
        texts[here] = some.cast(pa.string()).to_numpy(zero_copy_only=False)
    return spread(pa.array(texts, pa.string()), is_present), ends


def _big_numbers(data: bytes, pos: Ints) -> tuple[Any, Ints, Ints, Ints]:
    """Return a mask of what is no null, the high and low 64 bits of that, and the ends of all."""
    codes = numbers_at(data, pos, _INT).astype(np.int64)
    lengths = np.maximum(codes - _FIRST_LENGTH, 0)
    ends = pos + 4 + lengths
    check((codes >= 0).all() and (codes != _FIRST_LENGTH).all())
    check_apart(data, pos, ends)
    is_present, is_long = codes > 0, lengths > 0
    low = _SMALL[np.minimum(codes, len(_SMALL) - 1)]
    high = np.zeros(len(pos), np.int64)
    if is_long.any():
        high[is_long], low[is_long] = _halves(data, pos[is_long] + 4, ends[is_long])
    _check_digits(high, low, _DIGITS)
    return is_present, high[is_present], low[is_present], ends
