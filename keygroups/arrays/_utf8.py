"""String.hashCode of UTF-8, eight bytes at a time, without a decoder.

Java's hash is the sum of a text's units of UTF-16, times 31 for each unit behind. A unit is the
sum of the low bits of the bytes of its character, times 64 for each byte of the character behind.
So the hash is a sum of bytes times weights, and in a word of eight bytes the weights follow from
which bytes begin a character: those of the word, the last one before and three behind. That is
the index of a table.

A character of four bytes is two units, the first of which begins with the first byte and the other
one behind the second. The third byte, xxyyyy, has bits of both, and 31 * xx + 64 * yyyy is no
byte times a weight: xx goes to the fourth byte, times 31.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keygroups.arrays._kernels import MASK32, Array, Codes

Words = NDArray[np.uint64]

LONGEST = 128
"""The bytes of the longest row taken here: the time for one row goes to all."""
_EVEN_BYTES, _EVEN_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_HIGH_BITS, _LOW_WORD = np.uint64(0x8080808080808080), np.uint64(MASK32)
_POWERS = [pow(31, exponent, 2**32) for exponent in range(9)]
# What D800 and DC00 add, and 10000 takes away, of a character of four bytes.
_SURROGATES = (0xD800 - (0x10000 >> 10)) * 31 + 0xDC00
# Bytes that may not be behind some others, which else would write a character in a longer way
# than there is, a surrogate, or what is beyond Unicode.
_REFUSED_SECOND = (
    *((0xE0, np.less, 0xA0), (0xED, np.greater, 0x9F)),
    *((0xF0, np.less, 0x90), (0xF4, np.greater, 0x8F)),
)


class NoUtf8Error(Exception):
    """Some bytes are not UTF-8."""


class _Table(NamedTuple):
    """What follows from where characters begin, for a word of eight bytes."""

    marks: Words  # the high bits that say what kind of byte each one is
    marked: Words  # which bits these are
    thirds: Words  # the two bits xx of third bytes of four, moved down to the lowest ones
    weights: Codes  # a matrix: of the low bits of each byte
    constants: Codes
    powers: Codes  # 31 times itself for each unit that begins


@lru_cache(maxsize=1)
def _table() -> _Table:
    index = np.arange(1 << 12)[:, None]
    # The columns are the byte before, those of the word, and the three behind.
    begins = (index >> [11, *range(11)] & 1).astype(np.bool_)
    behind = np.zeros(begins.shape, dtype=np.int64)  # bytes of the same character
    for column in range(10, -1, -1):
        behind[:, column] = np.where(begins[:, column + 1], 0, behind[:, column + 1] + 1)
    second = ~begins & (behind == 2)  # of four bytes; any other with two behind is a first one
    own = slice(1, 9)
    first, rest, twos = begins[:, own], behind[:, own], second[:, own]
    wrong = (~first & (rest > 2)).any(axis=1)  # more than 3 behind a first byte have such a one
    units = first | twos  # begin with this byte
    after = units[:, ::-1].cumsum(axis=1)[:, ::-1] - units
    powers = np.array(_POWERS, dtype=np.uint64)
    kinds = np.minimum(rest, 3)  # of a wrong word, which is refused, no weight counts
    of_first = np.array([1, 64, 4096, 256])[kinds]
    of_rest = np.array([1, 64, 4 * 31])[np.minimum(rest, 2)]
    weights = np.where(first, of_first, of_rest).astype(np.uint64) * powers[after]
    constants = (twos * np.uint64(_SURROGATES) * powers[after]).sum(axis=1)
    marks = np.where(first, np.array([0, 0xC0, 0xE0, 0xF0])[kinds], 0x80)
    marked = np.where(first, np.array([0x80, 0xE0, 0xF0, 0xF8])[kinds], 0)
    marks[wrong], marked[wrong] = 0, 0xFF  # and no byte of a wrong word has no high bit
    return _Table(
        _as_words(marks),
        _as_words(marked),
        _as_words(second[:, 0:8] * 3),
        weights.astype(np.uint32),
        constants.astype(np.uint32),
        powers[units.sum(axis=1)].astype(np.uint32),
    )


def _as_words(octets: Array) -> Words:
    return octets.astype(np.uint8).view(np.uint64)[:, 0]


class _Columns(NamedTuple):
    """Rows in words, the longest first: the last words, those before the last ones, and so on.

    A row ends with its last word, and has zeros before the first byte.
    """

    words: list[Words]
    order: Array  # the numbers of the rows

    @property
    def counts(self) -> list[int]:
        return [len(column) for column in self.words]

    def of(self, rows: Array) -> list[Words]:
        """Return the words of some rows, given in order."""
        counts = np.searchsorted(rows, self.counts).tolist()
        return [column.take(rows[:count]) for column, count in zip(self.words, counts) if count]


def utf8_codes(data: Array, offsets: Array) -> Codes:
    """String.hashCode of rows of UTF-8, of at most `LONGEST` bytes.

    Raises NoUtf8Error.
    """
    if not data.size:
        return np.zeros(len(offsets) - 1, dtype=np.uint32)
    _check_second_bytes(data)
    columns = _columns(data, offsets)
    any_bits = np.zeros(len(columns.order), dtype=np.uint64)
    for column in columns.words:
        any_bits[: len(column)] |= column
    is_ascii = any_bits & _HIGH_BITS == 0
    codes = np.zeros(len(columns.order), dtype=np.uint32)
    for rows, hash_words in (
        (np.flatnonzero(is_ascii), _ascii_sums),
        (np.flatnonzero(~is_ascii), _sums),
    ):
        words = columns.of(rows)
        if words:
            codes[columns.order[rows]] = _fold(len(rows), words, *hash_words(words))
    return codes


def _fold(rows: int, columns: list[Words], sums: Codes, powers: Codes) -> Codes:
    """Return the hashes of rows, given the sums of their words, and 31 to the units of each."""
    codes = np.zeros(rows, dtype=np.uint32)
    end = len(sums)
    for column in reversed(columns):
        some = slice(end - len(column), end)
        head = codes[: len(column)]
        head *= powers[some]
        head += sums[some]
        end = some.start
    return codes


def _columns(data: Array, offsets: Array) -> _Columns:
    aligned = np.zeros(data.size // 8 + 2, dtype=np.uint64)  # the first is before the bytes
    aligned.view(np.uint8)[8 : 8 + data.size] = data
    lengths = np.diff(offsets)
    sizes = ((lengths + 7) >> 3).astype(np.uint8)
    order = np.argsort(~sizes, kind="stable")
    most = int(sizes[order[0]])
    # How many rows have more words than 0, 1, and so on; the last is none.
    counts = np.searchsorted(~sizes[order], 255 - np.arange(most + 1, dtype=np.uint8)).tolist()
    ends = offsets[1:][order]
    right = (ends.astype(np.uint64) & np.uint64(7)) << np.uint64(3)
    left = np.uint64(64) - right
    places = ends >> 3
    high = aligned.take(places + 1)
    words = []
    partial = lengths[order] & 7
    for count, longer in pairwise(counts):
        places = places[:count]
        low = aligned.take(places)
        column = high[:count] << left[:count]
        column |= low >> right[:count]
        column[longer:] &= _KEPT.take(partial[longer:count])
        words.append(column)
        high, places = low, places - 1
    return _Columns(words, order)


_KEPT = np.array([MASK32 << 32 | MASK32, *(2**64 - 2 ** (64 - 8 * n) for n in range(1, 8))], "u8")
"""Which bits of a row's first word are the row's, by the rest of its bytes divided by eight."""


def _ascii_sums(columns: list[Words]) -> tuple[Codes, Codes]:
    """Return the 31-fold of words of ASCII: pairs of bytes, of these, and of these."""
    words = np.concatenate(columns)
    pairs = (words & _EVEN_BYTES) * np.uint64(31) + (words >> np.uint64(8) & _EVEN_BYTES)
    quads = (pairs & _EVEN_PAIRS) * np.uint64(31**2) + (pairs >> np.uint64(16) & _EVEN_PAIRS)
    sums = (quads & _LOW_WORD) * np.uint64(31**4) + (quads >> np.uint64(32))
    return sums.astype(np.uint32), np.broadcast_to(np.uint32(_POWERS[8]), sums.shape)


def _sums(columns: list[Words]) -> tuple[Codes, Codes]:
    """Return what the bytes of words add to the hash, and 31 to the units that begin in them."""
    table = _table()
    words = np.concatenate(columns)
    index = _indexes(words, [len(column) for column in columns])
    low_bits = table.marks.take(index)
    low_bits ^= words
    wrong = table.marked.take(index)
    wrong &= low_bits
    if wrong.any():
        raise NoUtf8Error
    constants: Codes | None = None
    if words.view(np.uint8).max() >= 0xF0:
        constants = table.constants.take(index)
        thirds = low_bits >> np.uint64(4)
        thirds &= table.thirds.take(index)
        low_bits += thirds * np.uint64((31 << 8) - 16)
        thirds >>= np.uint64(56)  # of the last byte, whose fourth one is in another word
        constants += (thirds * np.uint64(31)).astype(np.uint32)
    weighted = table.weights.take(index, axis=0)
    weighted *= low_bits.view(np.uint8).reshape(-1, 8)
    sums = weighted.ravel()
    for _ in range(3):
        sums = sums[::2] + sums[1::2]
    if constants is not None:
        sums += constants
    return sums, table.powers.take(index)


def _indexes(words: Words, counts: list[int]) -> Array:
    """Return the index to the table of each word."""
    begins = np.packbits(words.view(np.int8) >= -64, bitorder="little")
    behind, before = np.full_like(begins, 255), np.full_like(begins, 255)
    start = 0
    for count, longer in zip(counts, [*counts[1:], 0]):
        end = start + count
        behind[end : end + longer] = begins[start : start + longer]
        before[start : start + longer] = begins[end : end + longer]
        if (begins[start + longer : end] & 1 == 0).any():
            raise NoUtf8Error  # a row begins within a character
        start = end
    high = behind & np.uint8(7)
    high |= before >> np.uint8(4) & np.uint8(8)
    both = np.stack([begins, high], axis=1)
    return both.view(np.uint16)[:, 0].astype(np.intp)


def _check_second_bytes(data: Array) -> None:
    """Refuse what has the form of UTF-8 and yet is none."""
    octets = data.tobytes()
    if b"\xc0" in octets or b"\xc1" in octets or data.max() > 0xF4:
        raise NoUtf8Error
    for first, is_refused, bound in _REFUSED_SECOND:
        if bytes([first]) in octets:
            refused = is_refused(data[1:], bound)
            refused &= data[:-1] == first
            if refused.any():
                raise NoUtf8Error
