"""String.hashCode of UTF-8, eight bytes at a time, without a decoder.

Java's hash is the sum of a text's units of UTF-16, each times 31 for every unit after it. A unit
is the sum of its character's bytes without their kind bits (0xxxxxxx, 10xxxxxx, 110xxxxx, ...),
each times 64 for every byte of the character after it. So the hash is a sum of bytes times
weights, and in a word of eight bytes the weights follow from which bytes begin a character: those
of the word, the last one before and the three after. These 12 bits are the index of a table.

"aé€bc" is one word, 61 C3 A9 E2 82 AC 62 63. Without the kind bits it is 61 03 29 02 02 2C 62 63;
the weights are 31^4, 64 * 31^3, 31^3, 64^2 * 31^2, 64 * 31^2, 31^2, 31 and 1, and the sum is
104563781, the hash code.

A character of four bytes is two units; the second one is taken to begin with the second byte.
The third byte, 10xxyyyy, has bits of both, and 31 * xx + 64 * yyyy is no byte times a weight: xx
is added to the fourth byte, times 31.
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
"""Bytes of the longest row that is hashed here; columns of words cost as much as that row."""
_EVEN_BYTES, _EVEN_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_HIGH_BITS, _LOW_WORD = np.uint64(0x8080808080808080), np.uint64(MASK32)
_POWERS = [pow(31, exponent, 2**32) for exponent in range(9)]
# The constant part of 31 * (D800 + (c - 10000 >> 10)) + DC00 + (c & 3FF), a surrogate pair.
_SURROGATES = (0xD800 - (0x10000 >> 10)) * 31 + 0xDC00
# Second bytes that are refused after these first ones: they would write a character in more bytes
# than it needs, a surrogate, or a number beyond Unicode.
_REFUSED_SECOND = (
    *((0xE0, np.less, 0xA0), (0xED, np.greater, 0x9F)),
    *((0xF0, np.less, 0x90), (0xF4, np.greater, 0x8F)),
)


class NoUtf8Error(Exception):
    """Some bytes are not UTF-8."""


class _Table(NamedTuple):
    """The facts of a word of eight bytes, by the 12 bits of where characters begin."""

    kind_bits: Words  # e.g. C0 for a byte that has to be 110xxxxx
    kind_masks: Words  # e.g. E0 for the same, and 0 for 10xxxxxx, which the index has checked
    third_masks: Words  # 03 for third bytes of four, whose xx are shifted down
    weights: Codes  # a matrix: factors of the bytes without their kind bits
    constants: Codes  # sums of the constant parts of surrogate pairs
    powers: Codes  # 31 ** units of UTF-16 that begin in the word


@lru_cache(maxsize=1)
def _table() -> _Table:
    index = np.arange(1 << 12)[:, None]
    # The columns are the byte before, those of the word, and the three after.
    begins = (index >> [11, *range(11)] & 1).astype(np.bool_)
    behind = np.zeros(begins.shape, dtype=np.int64)  # bytes of the same character after each
    for column in range(10, -1, -1):
        behind[:, column] = np.where(begins[:, column + 1], 0, behind[:, column + 1] + 1)
    second = ~begins & (behind == 2)  # second bytes of four: others with two after are first ones
    own = slice(1, 9)
    first, rest, twos = begins[:, own], behind[:, own], second[:, own]
    wrong = (~first & (rest > 2)).any(axis=1)  # A character has at most 3 bytes after its first.
    units = first | twos  # bytes with which a unit of UTF-16 is taken to begin
    after = units[:, ::-1].cumsum(axis=1)[:, ::-1] - units
    powers = np.array(_POWERS, dtype=np.uint64)
    kinds = np.minimum(rest, 3)  # Wrong words are refused: any weight will do for them.
    first_weights = np.array([1, 64, 4096, 256])[kinds]
    rest_weights = np.array([1, 64, 4 * 31])[np.minimum(rest, 2)]
    weights = np.where(first, first_weights, rest_weights).astype(np.uint64) * powers[after]
    constants = (twos * np.uint64(_SURROGATES) * powers[after]).sum(axis=1)
    bits = np.where(first, np.array([0, 0xC0, 0xE0, 0xF0])[kinds], 0x80)
    masks = np.where(first, np.array([0x80, 0xE0, 0xF0, 0xF8])[kinds], 0)
    bits[wrong], masks[wrong] = 0, 0xFF  # No word is 0 where bytes continue a character.
    return _Table(
        _as_words(bits),
        _as_words(masks),
        _as_words(second[:, 0:8] * 3),
        weights.astype(np.uint32),
        constants.astype(np.uint32),
        powers[units.sum(axis=1)].astype(np.uint32),
    )


def _as_words(octets: Array) -> Words:
    return octets.astype(np.uint8).view(np.uint64)[:, 0]


class _Columns(NamedTuple):
    """Rows in words, the longest row first: a column of all last words, one of those before, ...

    A row ends where its last word ends, and has zeros before its first byte.
    """

    words: list[Words]
    order: Array  # row numbers

    @property
    def counts(self) -> list[int]:
        return [len(column) for column in self.words]

    def of(self, rows: Array) -> list[Words]:
        """Return the columns of some rows, whose places in `order` are ascending."""
        counts = np.searchsorted(rows, self.counts).tolist()
        return [column.take(rows[:count]) for column, count in zip(self.words, counts) if count]


def utf8_codes(data: Array, offsets: Array) -> Codes:
    """Return String.hashCode of rows of UTF-8, of at most `LONGEST` bytes.

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
    """Return the hashes of rows by the sums of their words, and 31 ** units of each word."""
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
    """Return rows as words that end where the row ends, each made of two aligned words.

    The last word of a row that ends at byte 13 is bytes 5 to 12: 3 bytes of the aligned word
    0..7 and 5 of 8..15, so high << 24 | low >> 40.
    """
    aligned = np.zeros(data.size // 8 + 2, dtype=np.uint64)  # one word more before the bytes
    aligned.view(np.uint8)[8 : 8 + data.size] = data
    lengths = np.diff(offsets)
    sizes = ((lengths + 7) >> 3).astype(np.uint8)
    order = np.argsort(~sizes, kind="stable")
    most = int(sizes[order[0]])
    # Numbers of rows that have more than 0, 1, ... words; the last of them is 0.
    counts = np.searchsorted(~sizes[order], 255 - np.arange(most + 1, dtype=np.uint8)).tolist()
    ends = offsets[1:][order]
    right_by = (ends.astype(np.uint64) & np.uint64(7)) << np.uint64(3)
    left_by = np.uint64(64) - right_by
    places = ends >> 3
    high = aligned.take(places + 1)
    words = []
    partial = lengths[order] & 7
    for count, longer in pairwise(counts):
        places = places[:count]
        low = aligned.take(places)
        column = high[:count] << left_by[:count]
        column |= low >> right_by[:count]
        column[longer:] &= _KEPT.take(partial[longer:count])
        words.append(column)
        high, places = low, places - 1
    return _Columns(words, order)


_KEPT = np.array([MASK32 << 32 | MASK32, *(2**64 - 2 ** (64 - 8 * n) for n in range(1, 8))], "u8")
"""Masks of the row's own bytes in its first word, by the row's length modulo 8."""


def _ascii_sums(columns: list[Words]) -> tuple[Codes, Codes]:
    """Return the 31-fold of words of ASCII, and 31 ** 8: bytes make pairs, these quads, these it.

    "AB", 41 42, becomes the pair 0x41 * 31 + 0x42 = 2081, in the 16 bits of the two bytes.
    """
    words = np.concatenate(columns)
    pairs = (words & _EVEN_BYTES) * np.uint64(31) + (words >> np.uint64(8) & _EVEN_BYTES)
    quads = (pairs & _EVEN_PAIRS) * np.uint64(31**2) + (pairs >> np.uint64(16) & _EVEN_PAIRS)
    sums = (quads & _LOW_WORD) * np.uint64(31**4) + (quads >> np.uint64(32))
    return sums.astype(np.uint32), np.broadcast_to(np.uint32(_POWERS[8]), sums.shape)


def _sums(columns: list[Words]) -> tuple[Codes, Codes]:
    """Return the sum of weighted bytes of each word, and 31 ** units that begin in it."""
    table = _table()
    words = np.concatenate(columns)
    index = _indexes(words, [len(column) for column in columns])
    low_bits = table.kind_bits.take(index)
    low_bits ^= words
    wrong = table.kind_masks.take(index)
    wrong &= low_bits
    if wrong.any():
        raise NoUtf8Error
    constants: Codes | None = None
    if words.view(np.uint8).max() >= 0xF0:
        constants = table.constants.take(index)
        thirds = low_bits >> np.uint64(4)
        thirds &= table.third_masks.take(index)
        low_bits += thirds * np.uint64((31 << 8) - 16)
        thirds >>= np.uint64(56)  # xx of a last byte: its fourth byte is in the next word
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
    """Return the index to the table of each word.

    Bits 0 to 7 say of the word's bytes whether each begins a character (-64 <= signed byte), bits
    8 to 10 of the three after, and bit 11 of the one before; beyond a row they are set.
    """
    begins = np.packbits(words.view(np.int8) >= -64, bitorder="little")
    behind, before = np.full_like(begins, 255), np.full_like(begins, 255)
    start = 0
    for count, longer in zip(counts, [*counts[1:], 0]):
        end = start + count
        behind[end : end + longer] = begins[start : start + longer]
        before[start : start + longer] = begins[end : end + longer]
        if (begins[start + longer : end] & 1 == 0).any():
            raise NoUtf8Error  # The row's first byte continues a character.
        start = end
    high = behind & np.uint8(7)
    high |= before >> np.uint8(4) & np.uint8(8)
    both = np.stack([begins, high], axis=1)
    return both.view(np.uint16)[:, 0].astype(np.intp)


def _check_second_bytes(data: Array) -> None:
    """Raise NoUtf8Error for bytes that have the form of UTF-8 and yet are none."""
    octets = data.tobytes()
    if b"\xc0" in octets or b"\xc1" in octets or data.max() > 0xF4:
        raise NoUtf8Error
    for first, is_refused, bound in _REFUSED_SECOND:
        if bytes([first]) in octets:
            refused = is_refused(data[1:], bound)
            refused &= data[:-1] == first
            if refused.any():
                raise NoUtf8Error
