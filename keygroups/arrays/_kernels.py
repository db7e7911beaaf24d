"""Murmur and the 31-fold on NumPy arrays of 32 unsigned bits, whose arithmetic wraps as Java's.

All work in place where they can, on blocks that stay in the processor's cache.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint32]
Nulls: TypeAlias = NDArray[np.bool_]
Word: TypeAlias = "Codes | None"  # of 32 bits; None where it is 0 in all rows
State: TypeAlias = "int | Codes"  # an int where it is the same in all rows
Array: TypeAlias = NDArray[Any]

BLOCK = 1 << 15
"""Rows at a time: some arrays of so many words fit the second cache."""
MASK32 = 0xFFFFFFFF
_DOUBLES = 1 << 14  # as many of them fit the second cache too
_MOST_KEPT = 1 << 20  # powers of a number
INVERSE_OF_31 = pow(31, -1, 2**32)

_u32 = np.uint32
_C1, _C2, _C3 = _u32(0xCC9E2D51), _u32(0x1B873593), _u32(0xE6546B64)
_F1, _F2 = _u32(0x85EBCA6B), _u32(0xC2B2AE35)
_4, _5, _13, _15, _16, _17, _19 = map(_u32, (4, 5, 13, 15, 16, 17, 19))
_INT_MAX = _u32(0x7FFFFFFF)


def _rotate(words: Codes, spare: Codes, left: np.uint32, right: np.uint32) -> None:
    np.left_shift(words, left, out=spare)
    np.right_shift(words, right, out=words)
    np.bitwise_or(words, spare, out=words)


def _scramble(words: Codes, spare: Codes) -> None:
    """Do the rest of what murmur3_x86_32 does with a word that is multiplied by `_C1`."""
    _rotate(words, spare, _15, _17)
    np.multiply(words, _C2, out=words)


def _advance(state: Codes, spare: Codes) -> None:
    """Do what murmur3_x86_32 does with the state after it took a word."""
    _rotate(state, spare, _13, _19)
    np.multiply(state, _5, out=state)
    np.add(state, _C3, out=state)


def _finish(state: Codes, spare: Codes) -> None:
    """Avalanche, after the length was taken."""
    np.right_shift(state, _16, out=spare)
    np.bitwise_xor(state, spare, out=state)
    np.multiply(state, _F1, out=state)
    np.right_shift(state, _13, out=spare)
    np.bitwise_xor(state, spare, out=state)
    np.multiply(state, _F2, out=state)
    np.right_shift(state, _16, out=spare)
    np.bitwise_xor(state, spare, out=state)


def to_key_groups(codes: Codes, max_parallelism: int, spare: Codes, out: Codes) -> None:
    """Put the key groups of hash codes to `out`: Flink's murmur, then the modulo."""
    np.multiply(codes, _C1, out=out)
    _rotate(out, spare, _15, _17)
    np.multiply(out, _C2, out=out)
    _advance(out, spare)
    np.bitwise_xor(out, _4, out=out)
    _finish(out, spare)
    signed = out.view(np.int32)
    np.absolute(signed, out=signed)  # Integer.MIN_VALUE stays, and the mask makes it Flink's 0
    if max_parallelism.bit_count() == 1:
        np.bitwise_and(out, _u32(max_parallelism - 1), out=out)
        return
    np.bitwise_and(out, _INT_MAX, out=out)
    divisor = _u32(max_parallelism)
    np.floor_divide(out, divisor, out=spare)  # by one number it is faster than a remainder
    np.multiply(spare, divisor, out=spare)
    np.subtract(out, spare, out=out)


def to_operator_indexes(
    key_groups: Codes, max_parallelism: int, parallelism: int, out: Codes
) -> None:
    """Put the subtasks of key groups to `out`; products are below 2^30."""
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
    """Return the state of murmur3_x86_32 after one more word, both of the same rows."""
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
    """Return the hash of rows of so many bytes."""
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
    """Java's 31-fold from 0 of the rows of a matrix of bytes, signed or not, 1 to 4096 a row.

    It is a product with a vector of powers, in doubles: the powers have 32 bits, and no sum of so
    few has more than the 53 that a double holds exactly.
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
    """Java's 31-fold of each `units[offsets[i]:offsets[i + 1]]`, which are all units.

    31 has an inverse modulo 2^32, so that sums of units times its powers are prefix sums: two of
    them make the sum of a segment, and one power of 31 puts it to its place.
    """
    size = len(units)
    inverses = _powers(INVERSE_OF_31, size)
    sums = np.zeros(size + 1, dtype=_u32)
    np.cumsum(units * inverses[:size], dtype=_u32, out=sums[1:])
    ends, lengths = offsets[1:], np.diff(offsets)
    powers = _powers(31, size + 1)
    # The last unit counts once: it is at `end - 1`. Of no units the sum is 0 whatever the power,
    # the last one too, at -1.
    result: Codes = (sums[ends] - sums[offsets[:-1]]) * powers[ends - 1]
    if start:
        result += powers[lengths] * _u32(start)
    return result


def powers_of_31(exponents: Array) -> Codes:
    """Return a power of 31 for each exponent; there is one at least."""
    result: Codes = _powers(31, int(exponents.max()) + 1)[exponents]
    return result


def _powers(base: int, count: int) -> Codes:
    """Return the powers from 0 of a number, at least so many."""
    if count > _MOST_KEPT:
        return _make_powers(base, count)
    return _keep_powers(base, 1 << count.bit_length())


def _make_powers(base: int, count: int) -> Codes:
    result = np.full(count, base, dtype=_u32)
    result[0] = 1
    return np.cumprod(result, dtype=_u32)


_keep_powers = lru_cache(maxsize=64)(_make_powers)
