"""The bytes of values in arrays: joined row by row, in fixed sizes, and by offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups.savepoint._columns.entry_batches import BYTES
from keygroups.savepoint._state.stored_values import SEPARATOR

Int64s = NDArray[np.int64]
Octets = NDArray[np.uint8]
Pieces = Sequence[Any]
"""The bytes of values in pieces, which stand one after the other in each row.

A piece is an array of type `BYTES`, or one of NumPy with one dimension, whose numbers or records
are the bytes.
"""

_NOTHING = pa.scalar(b"", BYTES)
_LONGEST_RECORD = 1 << 16  # bytes; a record of NumPy has 2 GiB at most, with all its fields


def assembled(pieces: Pieces) -> pa.Array:
    """Return the bytes of values as one array of type `BYTES`."""
    parts = [
        part
        for is_fixed, run in groupby(
            map(_sized, pieces), lambda piece: isinstance(piece, np.ndarray)
        )
        for part in ([fixed(side_by_side([*run]))] if is_fixed else run)
    ]
    return parts[0] if len(parts) == 1 else joined(*parts)


def _sized(piece: Any) -> Any:
    """Return a piece as one of NumPy if its values have one size, not 0 and small."""
    return piece if isinstance(piece, np.ndarray) else records_of(piece)


def side_by_side(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return pieces of NumPy as one: records with a field for each.

    NumPy copies a field in a nanosecond; to join it as an array of bytes takes 20 times that.
    """
    if len(pieces) == 1:
        return pieces[0]
    names = [*map(str, range(len(pieces)))]
    whole = np.empty(len(pieces[0]), [(name, piece.dtype) for name, piece in zip(names, pieces)])
    for name, piece in zip(names, pieces):
        whole[name] = piece
    return whole


def records_of(array: pa.Array) -> pa.Array | NDArray[np.void]:
    """Return values that have one size, not 0 and small, as records; others as they are."""
    data, bounds = octets_of(array)
    size, rest = divmod(len(data), max(len(array), 1))
    if (
        rest
        or not 0 < size <= _LONGEST_RECORD
        or bounds[1] != size
        or (np.diff(bounds) != size).any()
    ):
        return array
    return data.view(f"V{size}")


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Return the bytes of several arrays one after the other, row by row."""
    return pc.binary_join_element_wise(*parts, _NOTHING)


def joined_runs(elements: pa.Array, offsets: Int64s, separator: bytes = SEPARATOR) -> pa.Array:
    """Return the elements from each offset to the next as one value, with a separator between.

    Elements a, b, c with offsets 0, 2, 3 and the separator "," become "a,b" and "c".
    """
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), elements)
    return pc.binary_join(lists, pa.scalar(separator, BYTES))


def with_others(written: pa.Array, mask: pa.Array, other: bytes) -> pa.Array:
    """Return an array with the bytes `other` in the rows of a mask, which `written` is without.

    Written a, b with the mask no, yes, no and other N become a, N, b.
    """
    is_other = mask.to_numpy(zero_copy_only=False)
    places = np.cumsum(~is_other) - 1
    places[is_other] = len(written)
    return pa.concat_arrays([written, bytes_array([other])]).take(pa.array(places))


def runs(elements: pa.Array, offsets: Int64s) -> pa.Array:
    """Return the elements from each offset to the next as one value, nothing between them."""
    data, bounds = octets_of(elements)
    return of_octets(data, bounds[offsets])


def bytes_array(values: Iterable[bytes]) -> pa.Array:
    """Return an array of bytes."""
    return pa.array(values, BYTES)


def taken(array: pa.Array, places: Int64s) -> pa.Array:
    """Return the values at some places."""
    values = records_of(array)
    if isinstance(values, np.ndarray):
        return fixed(values.take(places))
    return values.take(pa.array(places))


def fixed(values: NDArray[Any]) -> pa.Array:
    """Return the bytes of the rows of an array of NumPy."""
    size = values.nbytes // max(len(values), 1)
    return of_octets(values, np.arange(len(values) + 1) * size)


def records(octets: Octets) -> NDArray[Any]:
    """Return the rows of an array of bytes with two dimensions as records."""
    return np.ascontiguousarray(octets).view(f"V{octets.shape[1]}")[:, 0]


def zeros(sizes: Int64s) -> pa.Array:
    """Return values of as many zeros as `sizes` says."""
    bounds = bounds_of(sizes)
    return of_octets(np.zeros(bounds[-1], np.uint8), bounds)


def bounds_of(sizes: Int64s) -> Int64s:
    """Return the sum of the sizes before each, and that of all: of 3, 1 these are 0, 3, 4."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def list_bounds(lists: pa.Array) -> Int64s:
    """Return the number of the first element of each list, and that of all elements."""
    return bounds_of(lists.value_lengths().to_numpy())


def of_octets(data: NDArray[Any], offsets: Int64s) -> pa.Array:
    """Return the bytes from each offset to the next as values."""
    starts = np.ascontiguousarray(offsets, np.int64)  # NumPy's default integer may have 32 bits
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(BYTES, len(offsets) - 1, buffers)


def spans(
    data: bytes | Octets, starts: Int64s, ends: Int64s, numbers: Int64s | None = None
) -> pa.Array:
    """Return the bytes from each start to its end, which all are in order; or those of numbers.

    An array of them and of what is between them needs no copy, and take makes one of the spans.
    """
    offsets = np.empty(2 * len(starts), np.int64)
    offsets[::2], offsets[1::2] = starts, ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    between = pa.Array.from_buffers(BYTES, len(offsets) - 1, buffers)
    places = np.arange(0, len(offsets), 2) if numbers is None else 2 * numbers
    return between.take(pa.array(places))


def octets_of(array: pa.Array) -> tuple[Octets, Int64s]:
    """Return the bytes of all values of an array of bytes or text, and the offset of each."""
    if array.type != BYTES:
        array = array.cast(BYTES)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


def varints(numbers: Int64s) -> tuple[Octets, Int64s]:
    """Return the varints of numbers, low 7 bits first, and the offset of each.

    5 and 300 are the bytes 05, ac 02 at the offsets 0 and 1; the last offset is their end, 3.
    """
    if numbers.max(initial=0) < 0x80:
        return numbers.astype(np.uint8), np.arange(len(numbers) + 1)
    sizes = np.ones(len(numbers), np.int64)
    for shift in (7, 14, 21, 28):
        sizes += numbers >> shift > 0
    bounds = bounds_of(sizes)
    data = np.empty(bounds[-1], np.uint8)
    for place in range(int(sizes.max(initial=0))):
        is_long = sizes > place
        bits = numbers[is_long] >> 7 * place & 0x7F
        data[bounds[:-1][is_long] + place] = bits | (sizes[is_long] > place + 1) * 0x80
    return data, bounds
