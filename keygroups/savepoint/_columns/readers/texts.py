"""Readers of texts and bytes, which for the most part lie in `data` as Arrow has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._serializers.scalars import read_string
from keygroups.savepoint._columns.readers.parts import (
    Bools,
    Column,
    Ints,
    check,
    check_apart,
    numbers_at,
    octets_at,
)

_COUNT = np.dtype(">i4")
_MOST = 1 << 31  # bytes that Arrow's offsets of 32 bits reach
_MOST_OF_UNIT = 3  # bytes that a UTF-16 unit takes
_LEAST_ABREAST = 16  # texts that are read faster side by side than each alone


def read_texts(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read Strings: those that are ASCII and short lie in `data` as Arrow has them."""
    lengths = octets_at(data, pos).astype(np.int64)
    ends = pos + np.maximum(lengths, 1)
    is_other = lengths >= 0x80  # long
    if is_other.any():
        ends[is_other] = pos[is_other] + 1
    # Arrow trusts what it is told: a text ends before the next one, the last one in `data`.
    if (ends[:-1] > pos[1:]).any() or ends[-1] > len(data):
        raise IndexError("too few bytes")
    texts = _between(data, pos + 1, ends, pa.string(), lengths == 0)
    text_ends, copied = _buffers(texts)
    if len(copied) and copied.max() >= 0x80:
        high = np.flatnonzero(copied >= 0x80)
        is_short = np.zeros(len(pos), np.bool_)
        is_short[np.searchsorted(text_ends, high, "right") - 1] = True
        numbers = np.flatnonzero(is_short)
        read = _of_units(data, pos, numbers, lengths[numbers] - 1)
        if read is None:
            is_other |= is_short
        else:
            texts, ends[numbers] = pc.replace_with_mask(texts, is_short, read[0]), read[1]
    if not is_other.any():
        return texts, ends
    return _one_by_one(data, pos, texts, ends, is_other)


def _one_by_one(
    data: bytes, pos: Ints, texts: pa.Array, ends: Ints, is_other: Bools
) -> tuple[Column, Ints]:
    """Read those of the texts that are other ones."""
    others = np.flatnonzero(is_other)
    read = [read_string(data, start) for start in pos[others].tolist()]
    ends[others] = [end for _, end in read]
    values = [text for text, _ in read]
    try:
        return pc.replace_with_mask(texts, is_other, pa.array(values, pa.string())), ends
    except UnicodeEncodeError:  # half of a surrogate pair, which is no UTF-8
        blank = pc.replace_with_mask(texts, is_other, pa.nulls(len(others), pa.string()))
        column = blank.to_pylist()
        for number, text in zip(others.tolist(), values):
            column[number] = text
        return column, ends


def _of_units(data: bytes, pos: Ints, numbers: Ints, counts: Ints) -> tuple[pa.Array, Ints] | None:
    """Read short texts of some numbers, of so many UTF-16 units each, and where they end.

    A unit has seven bits in each of its bytes, the lowest first; that which is below 0x80 is its
    last. None is for texts that are read one by one: few, and those with what is odd.
    """
    if len(numbers) < _LEAST_ABREAST:
        return None
    starts, bounds = pos[numbers] + 1, np.append(pos[1:], len(data))[numbers]
    sizes = np.minimum(_MOST_OF_UNIT * counts, bounds - starts)
    rows, firsts = np.repeat(np.arange(len(numbers)), sizes), np.cumsum(sizes) - sizes
    octets = octets_at(data, np.arange(len(rows)) + (starts - firsts)[rows])
    is_last = octets < 0x80
    before: Ints = np.cumsum(is_last) - is_last
    is_of_text = before - before[firsts][rows] < counts[rows]
    octets, is_last, rows = octets[is_of_text], is_last[is_of_text], rows[is_of_text]
    lasts = np.flatnonzero(is_last)
    units_of = np.bincount(rows[lasts], minlength=len(numbers))
    begins = np.append(-1, lasts[:-1]) + 1
    widths = lasts + 1 - begins
    if not np.array_equal(units_of, counts) or widths.max() > _MOST_OF_UNIT:
        return None
    bits = (octets & 0x7F).astype(np.int64)
    units = bits[begins]
    for byte in range(1, _MOST_OF_UNIT):
        units += np.where(widths > byte, bits[np.minimum(begins + byte, lasts)], 0) << 7 * byte
    is_surrogate = (units >= 0xD800) & (units <= 0xDFFF)
    at = np.cumsum(counts) - counts
    # Decoded as one text, the halves of two texts would become a character.
    if units.max() > 0xFFFF or (is_surrogate[at] & (units[at] >= 0xDC00)).any():
        return None
    try:
        encoded = units.astype("<u2").tobytes().decode("utf-16-le").encode()
    except UnicodeDecodeError:  # half of a surrogate pair
        return None
    in_utf_8 = 1 + (units >= 0x80) + ((units >= 0x800) & ~is_surrogate)
    text_ends = np.append(0, np.cumsum(in_utf_8)[np.cumsum(counts) - 1]).astype(np.int32)
    buffers = [None, pa.py_buffer(text_ends), pa.py_buffer(encoded)]
    ends = starts + np.bincount(rows, minlength=len(numbers))
    return pa.Array.from_buffers(pa.string(), len(numbers), buffers), ends


def _between(
    data: bytes, starts: Ints, ends: Ints, data_type: pa.DataType, is_null: Bools | None = None
) -> pa.Array:
    """Return the bytes between places that are in order, each in `data`."""
    count = len(starts)
    offsets = np.empty(2 * count, np.int32)
    offsets[::2] = starts
    offsets[1::2] = ends
    parts = pa.Array.from_buffers(  # Every second one is a text, the others are what lies between.
        data_type, 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    if is_null is not None and not is_null.any():
        is_null = None
    return parts.take(pa.array(np.arange(0, 2 * count, 2), mask=is_null))


def _buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of each text, the end of the last one, and the bytes of all."""
    _, starts, copied = array.buffers()
    offsets = np.frombuffer(starts, np.int32, len(array) + 1)
    octets = np.frombuffer(copied or b"", np.uint8)
    return offsets, octets[: offsets[-1]]


def at_places(data: bytes, starts: Ints, ends: Ints, data_type: pa.DataType) -> pa.Array:
    """Return the bytes between places, or the texts if these are UTF-8; at least one.

    Each is in `data`, and all together have no more bytes than Arrow has in one array.
    """
    if (ends[:-1] <= starts[1:]).all():
        array = _between(data, starts, ends, data_type)
    else:
        sizes = ends - starts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        check(offsets[-1] < _MOST)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        copied = octets_at(data, places)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(copied)]
        array = pa.Array.from_buffers(data_type, len(starts), buffers)
    if pa.types.is_string(data_type) and (_buffers(array)[1] >= 0x80).any():
        array.validate(full=True)
    return array


def frames(data: bytes, pos: Ints) -> tuple[Ints, Ints]:
    """Return the starts and ends of frames, which are a size and as many bytes."""
    starts = pos + 4
    ends = starts + numbers_at(data, pos, _COUNT)
    check_apart(data, starts, ends)
    return starts, ends


def read_bytes(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read frames of bytes."""
    starts, ends = frames(data, pos)
    return at_places(data, starts, ends, pa.binary()), ends


def read_utf_8(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read frames of UTF-8."""
    starts, ends = frames(data, pos)
    return at_places(data, starts, ends, pa.string()), ends


def read_characters(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    """Read chars; halves of surrogate pairs are left to the reader of single values."""
    text = numbers_at(data, pos, np.dtype(">u2")).tobytes().decode("utf-16-be")
    check(len(text) == len(pos))  # Two halves that follow one another are a character.
    return pa.array(list(text), pa.string()), pos + 2
