"""String.hashCode and UUID.hashCode of text in Arrow's buffers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._checks import show
from keygroups.arrays._kernels import Array, Codes, fold_matrix, fold_segments, powers_of_31
from keygroups.arrays._rows import RowError, from_numpy
from keygroups.arrays._utf8 import LONGEST, NoUtf8Error, utf8_codes
from keygroups.errors import InvalidValueError

# Bytes of a row of a matrix that has gaps, and of one that is full.
_WIDEST, _WIDEST_FULL = 64, 256
_ROWS = 16_384  # rows of text beyond ASCII at a time
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
    octets = np.frombuffer(data, np.uint8, int(offsets[-1]) - first, first)
    return octets, offsets - first


def check_utf8(array: pa.Array, name: str) -> None:
    """Raise RowError for a row that is no UTF-8, which Arrow does not check by itself."""
    data, offsets = text_bytes(array)
    if data.max(initial=0) < 0x80:
        return
    wide = pa.types.is_large_string(array.type)
    try:
        array.view(pa.large_binary() if wide else pa.binary()).cast(array.type)
    except pa.ArrowInvalid:
        raise _no_utf8(data, offsets, name) from None


def _no_utf8(data: Array, offsets: Array, name: str) -> RowError:
    """Return the error of the first row that is no UTF-8; there is one."""
    rows = (data[start:end].tobytes() for start, end in pairwise(offsets.tolist()))
    row, octets = next((row, octets) for row, octets in enumerate(rows) if not _is_utf8(octets))
    return RowError(row, InvalidValueError(f"{name} must be text in UTF-8, got {show(octets)}"))


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def string_codes(array: pa.Array) -> Codes:
    """Return String.hashCode of text without nulls."""
    try:
        return _string_codes(array)
    except NoUtf8Error:
        raise _no_utf8(*text_bytes(array), "key of type STRING") from None


def _string_codes(array: pa.Array) -> Codes:
    data, offsets = text_bytes(array)
    codes = np.zeros(len(array), dtype=np.uint32)
    if not data.size:
        return codes
    if data.max() < 0x80:
        return _fold(data, offsets)
    is_long = np.diff(offsets) > LONGEST
    if is_long.any():
        for chosen, hash_some in ((is_long, _decoded_codes), (~is_long, _string_codes)):
            if chosen.any():
                codes[chosen] = hash_some(array.filter(from_numpy(chosen)))
        return codes
    for first in range(0, len(codes), _ROWS):
        some = offsets[first : first + _ROWS + 1]
        codes[first : first + _ROWS] = utf8_codes(data[some[0] : some[-1]], some - some[0])
    return codes


def _decoded_codes(array: pa.Array) -> Codes:
    """Return String.hashCode of texts, none empty, by way of their UTF-16."""
    data, offsets = text_bytes(array)
    try:
        text = str(data.data, "utf-8")
    except UnicodeDecodeError:
        raise NoUtf8Error from None
    # A character has one byte that does not continue another's, and a second unit where it has
    # four bytes.
    begins = data & 0xC0 != 0x80
    if not begins[offsets[:-1]].all():
        raise NoUtf8Error
    units = np.zeros(data.size + 1, dtype=np.int64)
    np.cumsum(begins.view(np.uint8) + (data >= 0xF0), out=units[1:])
    return fold_segments(np.frombuffer(text.encode("utf-16-le"), "<u2"), units[offsets], 0)


def _fold(octets: Array, offsets: Array) -> Codes:
    """Return Java's 31-fold from 0 of rows of ASCII, or of signed bytes."""
    rows, lengths = len(offsets) - 1, np.diff(offsets)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if longest > (_WIDEST_FULL if shortest == longest else _WIDEST):
        return fold_segments(octets, offsets, 0)
    if shortest == longest:
        return fold_matrix(octets.reshape(rows, longest))
    return fold_matrix(padded(octets, offsets, longest).view(octets.dtype))


def padded(
    octets: Array, offsets: Array, width: int, pad: Callable[..., pa.Array] = pc.ascii_lpad
) -> Array:
    """Return rows of bytes as a matrix, with zeros before each, which add 0 to a 31-fold."""
    rows = len(offsets) - 1
    # Arrow's padding of ASCII is by byte, so that it serves for any bytes.
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(octets)]
    text = pa.Array.from_buffers(pa.large_string(), rows, buffers)
    filled = pad(text, width, padding="\0").buffers()[2]
    return np.frombuffer(filled, np.uint8, rows * width).reshape(rows, width)


def byte_buffer_codes(array: pa.Array) -> Codes:
    """Return ByteBuffer.hashCode of binaries without nulls.

    It is the 31-fold from 1 of signed bytes, from the last to the first.
    """
    data, offsets = text_bytes(array)
    codes = powers_of_31(np.diff(offsets))
    if data.size:
        # Reversing all bytes at once reverses the rows too; the last slice puts these back.
        octets = np.ascontiguousarray(data[::-1]).view(np.int8)
        codes += _fold(octets, np.ascontiguousarray((offsets[-1] - offsets)[::-1]))[::-1]
    return codes


def uuid_codes(array: pa.Array) -> Codes:
    """Return UUID.hashCode of canonical text without nulls."""
    data, offsets = text_bytes(array)
    wrong = np.diff(offsets) != 36
    if not wrong.any():
        chars = data.reshape(len(array), 36)
        digits = _DIGITS[np.delete(chars, _HYPHENS, axis=1)]
        wrong = (digits > 15).any(axis=1) | (chars[:, _HYPHENS] != ord("-")).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = data[offsets[row] : offsets[row + 1]].tobytes().decode("utf-8", "backslashreplace")
        message = f"key of type UUID must be its canonical text, got {show(text)}"
        raise RowError(row, InvalidValueError(message))
    octets = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    words = octets.view(">u4").astype(np.uint32)
    codes: Codes = np.bitwise_xor.reduce(words, axis=1)
    return codes
