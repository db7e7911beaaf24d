"""Murmur and the 31-fold on NumPy arrays of uint32, whose arithmetic wraps as Java's does.

The 31-fold is Java's `h = 31 * h + x` over some numbers. Functions work in place where they can,
on blocks that stay in the processor's cache.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint32]
Nulls: TypeAlias = NDArray[np.bool_]
Word: TypeAlias = "Codes | None"  # 32 bits of each row; None where they are 0 in all rows
State: TypeAlias = "int | Codes"  # an int where the state is the same in all rows
Array: TypeAlias = NDArray[Any]

BLOCK = 1 << 15
"""Rows at a time: a few arrays of 128 KiB fit the second-level cache."""
MASK32 = 0xFFFFFFFF
_DOUBLES = 1 << 14  # numbers of a matrix at a time: 128 KiB as doubles
_MOST_KEPT = 1 << 20  # powers of a number that stay in memory
INVERSE_OF_31 = pow(31, -1, 2**32)

_u32 = np.uint32
_C1, _C2, _C3 = _u32(0xCC9E2D51), _u32(0x1B873593), _u32(0xE6546B64)
_F1, _F2 = _u32(0x85EBCA6B), _u32(0xC2B2AE35)
_4, _5, _13, _15, _16, _17, _19 = map(_u32, (4, 5, 13, 15, 16, 17, 19))
_INT_MAX = _u32(0x7FFFFFFF)


def _rotate(words: Codes, spare: Codes, left_by: np.uint32, right_by: np.uint32) -> None:
    np.left_shift(words, left_by, out=spare)
    np.right_shift(words, right_by, out=words)
    np.bitwise_or(words, spare, out=words)


def _scramble(words: Codes, spare: Codes) -> None:
    """Finish murmur3_x86_32's mixing of a word that is multiplied by `_C1` already."""
    _rotate(words, spare, _15, _17)
    np.multiply(words, _C2, out=words)


def _advance(state: Codes, spare: Codes) -> None:
    """Rotate and stir murmur3_x86_32's state, after a mixed word was xored into it."""
    _rotate(state, spare, _13, _19)
    np.multiply(state, _5, out=state)
    np.add(state, _C3, out=state)


def _finish(state: Codes, spare: Codes) -> None:
    """Avalanche murmur3_x86_32's state (fmix32), after the length was xored into it."""
    np.right_shift(state, _16, out=spare)
    np.bitwise_xor(state, spare, out=state)
    np.multiply(state, _F1, out=state)
    np.right_shift(state, _13, out=spare)
    np.bitwise_xor(state, spare, out=state)
    np.multiply(state, _F2, out=state)
    np.right_shift(state, _16, out=spare)
    np.bitwise_xor(state, spare, out=state)


def to_key_groups(codes: Codes, max_parallelism: int, spare: Codes, out: Codes) -> None:
    """Put the key groups of hash codes to `out`: Flink's murmur, then the modulo.

    It is murmur3_x86_32 of the code's 4 bytes with seed 0. For "hello", whose code is 99162322,
    the mixed word is 0x2951CA54, the state 0x04C90536, and the hash 1715862179: key group 35 of
    128. MathUtils.murmurHash takes the absolute value, and 0 for Integer.MIN_VALUE.
    """
    np.multiply(codes, _C1, out=out)
    _rotate(out, spare, _15, _17)
    np.multiply(out, _C2, out=out)
    _advance(out, spare)
    np.bitwise_xor(out, _4, out=out)
    _finish(out, spare)
    signed = out.view(np.int32)
    np.absolute(signed, out=signed)  # MIN_VALUE stays negative; the masks below make it 0.
    if max_parallelism.bit_count() == 1:
        np.bitwise_and(out, _u32(max_parallelism - 1), out=out)
        return
    np.bitwise_and(out, _INT_MAX, out=out)
    divisor = _u32(max_parallelism)
    np.floor_divide(out, divisor, out=spare)  # NumPy's division by a scalar beats its remainder.
    np.multiply(spare, divisor, out=spare)
    np.subtract(out, spare, out=out)


def to_operator_indexes(
    key_groups: Codes, max_parallelism: int, parallelism: int, out: Codes
) -> None:
    """Put the subtasks of key groups to `out`; no product exceeds 2^30, so that none wraps."""
    np.multiply(key_groups, _u32(parallelism), out=out)
    np.floor_divide(out, _u32(max_parallelism), out=out)


def fold_long(bits: Array) -> Codes:
    """Long.hashCode of 8-byte values: low word xor high word."""
    words = np.ascontiguousarray(bits).view(_u32)
    return np.bitwise_xor(words[::2], words[1::2])


def choose(marks: Nulls, chosen: int | Codes, others: Codes) -> Codes:
    """Return codes where marked, else the others; np.where is slow on marks that alternate."""
    codes = np.bitwise_xor(others, chosen)
    np.multiply(codes, marks.astype(_u32), out=codes)
    return np.bitwise_xor(codes, others, out=codes)


# --- murmur3 of many rows ---------------------------------------------------------------


def murmur_word(state: State, word: Word, spare: Codes) -> State:
    """Return murmur3_x86_32's state of each row after one more word of it.

    A word of 0 mixes to 0, so that `None` needs no product: the state is only rotated and stirred,
    once for all rows while it is an int.
    """
    if word is not None:
        mixed = np.multiply(word, _C1)
        _scramble(mixed, spare)
        np.bitwise_xor(mixed, state, out=mixed)
    elif isinstance(state, int):
        state = state << 13 | state >> 19
        return (state * 5 + int(_C3)) & MASK32
    else:
        mixed = state.copy()
    _advance(mixed, spare)
    return mixed


def murmur_end(state: Codes, lengths: int | Codes, spare: Codes) -> Codes:
    """Return the hashes of rows by their states and their lengths, which Murmur xors in."""
    state = np.bitwise_xor(state, lengths)
    _finish(state, spare)
    return state


# --- the 31-fold ------------------------------------------------------------------------


def fold_fields(codes: list[Codes], start: int, rows: int) -> Codes:
    """Java's 31-fold of fields, one array each."""
    result = np.full(rows, start, dtype=_u32)
    for code in codes:
        np.multiply(result, _u32(31), out=result)
        np.add(result, code, out=result)
    return result


def fold_matrix(octets: Array) -> Codes:
    """Return Java's 31-fold from 0 of each row of a matrix of bytes, signed or not, 1 to 4096.

    It is the product with the vector (..., 961, 31, 1) modulo 2^32, in doubles: a power has 32
    bits and a byte 8, so that a sum of 4096 such products has at most the 53 bits of a double.
    """
    rows, width = octets.shape
    powers = _descending(width)
    result = np.zeros(rows, dtype=_u32)
    step = _DOUBLES // width
    for row in range(0, rows, step):
        some = slice(row, row + step)
        sums = octets[some].astype(np.float64) @ powers
        result[some] = sums.astype(np.int64).view(_u32)[::2]
    return result


@lru_cache(maxsize=512)
def _descending(width: int) -> NDArray[np.float64]:
    return _powers(31, width)[:width][::-1].astype(np.float64)


def fold_segments(units: Array, offsets: Array, start: int) -> Codes:
    """Return Java's 31-fold of each `units[offsets[i]:offsets[i + 1]]`; they cover all units.

    31 has an inverse r modulo 2^32, so that one prefix sum of `units[i] * r**i` serves all
    segments: the difference of two entries, times `31 ** (end - 1)`, is a segment's fold. With
    units 97, 98, 99 and offsets 0, 2, 3 the first is (97 + 98 * r) * 31 = 97 * 31 + 98 = 3105.
    """
    size = len(units)
    inverses = _powers(INVERSE_OF_31, size)
    sums = np.zeros(size + 1, dtype=_u32)
    np.cumsum(units * inverses[:size], dtype=_u32, out=sums[1:])
    ends, lengths = offsets[1:], np.diff(offsets)
    powers = _powers(31, size + 1)
    # The last unit of a segment, at `end - 1`, has the factor 1. The sum of an empty segment is 0
    # whatever the power, that at index -1 included.
    result: Codes = (sums[ends] - sums[offsets[:-1]]) * powers[ends - 1]
    if start:
        result += powers[lengths] * _u32(start)
    return result


def powers_of_31(exponents: Array) -> Codes:
    """Return 31 to the power of each of one exponent or more."""
    result: Codes = _powers(31, int(exponents.max()) + 1)[exponents]
    return result


def _powers(base: int, count: int) -> Codes:
    """Return at least `count` powers of a number, from its power 0."""
    if count > _MOST_KEPT:
        return _make_powers(base, count)
    return _keep_powers(base, 1 << count.bit_length())


def _make_powers(base: int, count: int) -> Codes:
    result = np.full(count, base, dtype=_u32)
    result[0] = 1
    return np.cumprod(result, dtype=_u32)


_keep_powers = lru_cache(maxsize=64)(_make_powers)
