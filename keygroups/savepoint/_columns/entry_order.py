"""The order of entries by key group, state and key, from numbers that NumPy sorts fast."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups.savepoint._columns.byte_arrays import Int64s, Octets, octets_of
from keygroups.savepoint._columns.entry_batches import KEY, KEY_GROUP, STATE

Uint64s = NDArray[np.uint64]

_WORD = 8  # bytes of a key that are one number
# Keys that have as many words alike are compared whole; more of them once some are in order.
_MOST_WORDS, _MORE_WORDS = 64, 8
_AT_ONCE = 1 << 14  # numbers that stay in the processor's cache
_BITS = 64
_STATE_BITS = 16  # a state's number has 15
_u64 = np.uint64
# What stays of a word of which a key has so many bytes.
_MASKS = np.array([(1 << _BITS) - (1 << _BITS - 8 * size) for size in range(_WORD + 1)], _u64)


def places_in_order(batch: pa.RecordBatch) -> Int64s:
    """Return the places of entries sorted by key group, state and key; equal ones keep theirs.

    Eight bytes of a key are a number, of which the bits that all entries share are left out. The
    key group, as many bits of the key as there is room for, and the entry's place are one number
    of 64 bits: NumPy sorts those in a fraction of the time that Arrow takes for bytes. Entries
    that are still equal are sorted by the bits that follow, and so on. An example: of user-07,
    user-12 and user-11 the bits 0111, 1010 and 1001 are enough.
    """
    words = _Words(*octets_of(batch.column(KEY)))
    places = slots = tied = np.arange(len(batch))  # `tied` are the entries of the places `slots`.
    is_run = np.ones(max(len(batch) - 1, 0), np.bool_)  # Each entry is tied with the next.
    word, most = 0, min(words.count, _MOST_WORDS)
    rest: tuple[Uint64s, int] | None = None  # bits of a word for which there was no room
    numbers, bits = _compact(states_of(batch), is_run)
    while True:
        place_bits = (len(tied) - 1).bit_length()
        while (room := _BITS - place_bits - bits) > 0 and word <= most:
            digits, more = rest or _compact(words.of(tied, word), is_run)
            count = min(room, more)
            numbers <<= _u64(count)
            numbers |= digits >> _u64(more - count)
            bits, more = bits + count, more - count
            rest = (digits & _u64((1 << more) - 1), more) if more else None
            word += not more
        numbers <<= _u64(place_bits)
        numbers |= np.arange(len(tied), dtype=_u64)
        numbers.sort()
        order = (numbers & _u64((1 << place_bits) - 1)).view(np.int64)
        if tied is slots:  # in the first round
            places = tied = order
            most = min(words.count, word + _MORE_WORDS)
        else:
            places[slots] = tied = tied[order]
        numbers >>= _u64(place_bits)
        is_next = numbers[1:] == numbers[:-1]
        if word > words.count or not is_next.any():
            return places
        is_tied = np.append(is_next, False)
        is_tied[1:] |= is_next
        ranks = np.append(0, np.cumsum(~is_next))[is_tied]
        slots, tied = slots[is_tied], tied[is_tied]
        if word > most:
            places[slots] = tied[_whole_order(ranks, batch.column(KEY).take(pa.array(tied)))]
            return places
        if rest is not None:
            rest = rest[0][order[is_tied]], rest[1]
        is_run = ranks[1:] == ranks[:-1]
        numbers, bits = ranks.view(_u64), int(ranks[-1]).bit_length()


def states_of(batch: pa.RecordBatch) -> Uint64s:
    """Return a number for the key group and the state of each entry, in whose order they are."""
    groups, states = (batch.column(column).to_numpy() for column in (KEY_GROUP, STATE))
    numbers: Uint64s = groups.astype(_u64)
    numbers <<= _u64(_STATE_BITS)
    numbers |= states.view(np.uint32)
    return numbers


def _whole_order(ranks: Int64s, keys: pa.Array) -> Int64s:
    """Return the order of keys by rank and bytes, which Arrow compares; equal ones keep theirs."""
    batch = pa.RecordBatch.from_arrays([pa.array(ranks), keys], ["rank", "key"])
    order = pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in batch.schema.names])
    places: Int64s = order.to_numpy()
    return places


class _Words:
    """The words of keys: eight bytes each as a number, with zeros behind a key's end.

    After the last word comes the length, with the number `count`: it tells a key from the same
    with zeros behind it.
    """

    def __init__(self, data: Octets, bounds: Int64s) -> None:
        self._starts, self._sizes = bounds[:-1], np.diff(bounds)
        self._least = int(self._sizes.min()) if len(self._sizes) else 0
        self.count = -(-int(self._sizes.max(initial=0)) // _WORD)
        if len(data) < _WORD:
            data = np.append(data, np.zeros(_WORD, np.uint8))
        self._last = len(data) - _WORD
        self._numbers = np.ndarray(self._last + 1, ">u8", data, strides=(1,))  # one at each byte

    def of(self, rows: Int64s, word: int) -> Uint64s:
        """Return a word of some keys."""
        numbers = np.empty(len(rows), _u64)
        for start in range(0, len(rows), _AT_ONCE):
            chunk = slice(start, start + _AT_ONCE)
            numbers[chunk] = self._some(rows[chunk], word)
        return numbers

    def _some(self, rows: Int64s, word: int) -> Uint64s:
        sizes = self._sizes[rows]
        if word == self.count:
            return sizes.view(_u64)
        start = word * _WORD
        starts = self._starts[rows] + start
        if start + _WORD <= self._least:
            return self._numbers[starts].astype(_u64)
        beyond = np.maximum(starts - self._last, 0)  # bytes after the last that there are
        numbers = self._numbers[starts - beyond].astype(_u64)
        numbers <<= 8 * beyond.view(_u64)
        numbers &= _MASKS[np.clip(sizes - start, 0, _WORD)]
        return numbers


def _compact(numbers: Uint64s, is_run: NDArray[np.bool_]) -> tuple[Uint64s, int]:
    """Return numbers without the bits in which none differs from the next, and how many bits stay.

    This leaves them in their order. Those alone are compared that have a True of `is_run` between
    them: of 0101, 0110 and 1101 with True and False the bits 01, 10 and 01 stay.
    """
    varying = 0
    for start in range(0, len(is_run), _AT_ONCE):
        some, mask = numbers[start : start + _AT_ONCE + 1], is_run[start : start + _AT_ONCE]
        varying |= int(np.bitwise_or.reduce((some[1:] ^ some[:-1])[mask]))
    pieces, bits = [], 0
    while varying:
        low = (varying & -varying).bit_length() - 1
        above = varying >> low
        # The size is that of the lowest ones side by side.
        size = (above + 1 & -(above + 1)).bit_length() - 1
        pieces.append((low, (1 << size) - 1, bits))
        bits += size
        varying = above >> size << low + size
    result = np.empty(len(numbers), _u64)
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        whole = np.zeros(len(some), _u64)
        for piece in pieces:
            shift, ones, place = map(_u64, piece)
            whole |= (some >> shift & ones) << place
        result[start : start + _AT_ONCE] = whole
    return result, bits
