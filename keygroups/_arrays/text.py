"""String.hashCode and UUID.hashCode of text in Arrow's buffers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._arrays.kernels import Array, Codes, fold_matrix, fold_segments
from keygroups._arrays.rows import RowError
from keygroups._checks import show
from keygroups.errors import InvalidValueError

_WIDEST, _WIDEST_FULL = (
    64,
    256,
)  # units of a row of a matrix that has gaps, and of one that is full
_ROWS = 4_096  # of text with more than ASCII at a time: Python's codecs are slower with more
_NO_TEXT = "key of type STRING must be text in UTF-8, got other bytes"
_HYPHENS = (8, 13, 18, 23)
_DIGITS = np.full(256, 255, dtype=np.uint8)  # the value of each hexadecimal digit
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _DIGITS[list(_digits)] = range(16)


def text_bytes(array: pa.Array) -> tuple[Array, Array]:
    """Return the bytes of text or binaries without nulls, and the offsets of each in them."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets_buffer, data = array.buffers()
    dtype = np.dtype(np.int64 if wide else np.int32)
    start = array.offset * dtype.itemsize
    offsets = np.frombuffer(offsets_buffer, dtype, len(array) + 1, start).astype(np.int64)
    first = int(offsets[0])
    found = np.frombuffer(data, np.uint8, int(offsets[-1]) - first, first)
    return found, offsets - first


def string_codes(array: pa.Array) -> Codes:
    """String.hashCode of text without nulls."""
    data, offsets = text_bytes(array)
    if not data.size:
        return np.zeros(len(array), dtype=np.uint32)
    if data.max() < 0x80:
        return _fold(data, offsets)
    ascii_rows = pc.string_is_ascii(array)
    if not ascii_rows.true_count:
        return _by_units(data, offsets)
    codes = np.zeros(len(array), dtype=np.uint32)
    chosen = ascii_rows.to_numpy(zero_copy_only=False)
    codes[chosen] = _fold(*text_bytes(array.filter(ascii_rows)))
    codes[~chosen] = _by_units(*text_bytes(array.filter(pc.invert(ascii_rows))))
    return codes


def _by_units(data: Array, offsets: Array) -> Codes:
    """Hash text by its units of UTF-16, some rows at a time; none is empty."""
    # A row that starts inside a character would show only in the row itself.
    if (data[offsets[:-1]] & 0xC0 == 0x80).any():
        raise InvalidValueError(_NO_TEXT)
    codes = np.zeros(len(offsets) - 1, dtype=np.uint32)
    for first in range(0, len(codes), _ROWS):
        some = offsets[first : first + _ROWS + 1]
        codes[first : first + _ROWS] = _unicode_codes(data[some[0] : some[-1]], some - some[0])
    return codes


def _unicode_codes(data: Array, offsets: Array) -> Codes:
    try:
        text = str(data.data, "utf-8")
    except UnicodeDecodeError:
        raise InvalidValueError(_NO_TEXT) from None
    # A character has one byte that does not continue another's, and a second unit where it has
    # four bytes.
    counts = (data & 0xC0 != 0x80).view(np.uint8)
    np.add(counts, data >= 0xF0, out=counts, casting="unsafe")
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    in_units = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(_sums(counts, offsets), out=in_units[1:])
    return _fold(units, in_units)


def _sums(counts: Array, offsets: Array) -> Array:
    """Return the sum of each `counts[offsets[i]:offsets[i + 1]]`, none empty; none is above 2."""
    lengths = np.diff(offsets)
    if lengths.max() > 127:  # where a byte may not hold the sum
        sums = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=sums[1:])
        return np.diff(sums[offsets])
    found: Array = np.add.reduceat(counts, offsets[:-1])
    return found


def _fold(units: Array, offsets: Array) -> Codes:
    """Java's 31-fold of rows of units."""
    rows, lengths = len(offsets) - 1, np.diff(offsets)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if longest > (_WIDEST_FULL if shortest == longest else _WIDEST):
        return fold_segments(units, offsets, 0)
    if shortest == longest:
        return fold_matrix(units.reshape(rows, longest))
    return fold_matrix(padded(units, offsets, longest))


def padded(
    units: Array, offsets: Array, width: int, pad: Callable[..., pa.Array] = pc.ascii_lpad
) -> Array:
    """Return rows of units as a matrix, with zeros before each, which no 31-fold counts."""
    rows, size = len(offsets) - 1, units.dtype.itemsize
    # Arrow pads what it takes for ASCII byte by byte, whatever the bytes are.
    buffers = [None, pa.py_buffer(offsets * size), pa.py_buffer(units)]
    text = pa.Array.from_buffers(pa.large_string(), rows, buffers)
    found = pad(text, width * size, padding="\0").buffers()[2]
    return np.frombuffer(found, units.dtype, rows * width).reshape(rows, width)


def uuid_codes(array: pa.Array) -> Codes:
    """UUID.hashCode of canonical text without nulls."""
    data, offsets = text_bytes(array)
    wrong = np.diff(offsets) != 36
    if not wrong.any():
        chars = data.reshape(-1, 36)
        digits = _DIGITS[np.delete(chars, _HYPHENS, axis=1)]
        wrong = (digits > 15).any(axis=1) | (chars[:, _HYPHENS] != ord("-")).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = show(array[row].as_py())
        message = f"key of type UUID must be its canonical text, got {text}"
        raise RowError(row, InvalidValueError(message))
    octets = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    words = octets.view(">u4").astype(np.uint32)
    codes: Codes = np.bitwise_xor.reduce(words, axis=1)
    return codes
