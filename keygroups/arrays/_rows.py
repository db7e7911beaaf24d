"""Rows for all hashers of arrays: their values without nulls as NumPy arrays, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups import types
from keygroups._checks import show
from keygroups.arrays._kernels import Array, Codes, Nulls
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.hashing import hash_code

Rows: TypeAlias = Any  # a NumPy index: a slice, or an array of row numbers

WORD = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class RowError(Exception):
    """A refused row: its number in the array at hand, and the error without that number."""

    def __init__(self, row: int, error: KeyGroupsError) -> None:
        super().__init__(row, error)
        self.row, self.error = int(row), error

    def at(self, row: int, place: str = "") -> RowError:
        """Return the error as that of a row of the containing array, `place` before its text."""
        return RowError(row, type(self.error)(f"{place}{self.error}"))


def from_numpy(values: Array, nulls: Nulls | None = None) -> pa.Array:
    """Return numbers, bools or times as an Arrow array, with nulls where they are marked.

    They are in the machine's order of bytes, and no datetime64 of days: Arrow's have 32 bits.
    `pa.array` would first import pandas where it is installed, which takes as long as to hash
    millions of keys.
    """
    arrow_type, count = pa.from_numpy_dtype(values.dtype), len(values)
    if values.dtype.kind == "b":
        values = np.packbits(values, bitorder="little")
    data = np.require(values, requirements=["C", "A"]).view(np.uint8)
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, count, [valid, pa.py_buffer(data)])


def bools(array: pa.Array) -> Nulls:
    """Return bools, none of them null, as NumPy has them; Arrow's way imports pandas too."""
    marks: Nulls = numbers(array.cast(pa.uint8())).view(np.bool_)
    return marks


def refuse(marks: Array, values: Array, message: str) -> None:
    """Raise RowError with the value of the first marked row, if any row is marked."""
    if marks.any():
        row = int(np.argmax(marks))
        raise RowError(row, InvalidValueError(f"{message}, got {show(values[row].item())}"))


def refuse_as_the_core(marks: Array, array: pa.Array, key_type: types.KeyType) -> None:
    """Raise RowError with the core's error for the first marked row that the core refuses."""
    for row in np.flatnonzero(marks).tolist():
        try:
            hash_code(array[row].as_py(), key_type)
        except KeyGroupsError as error:
            raise RowError(row, error) from None


def check_type(right: bool, type_name: object, takes: str, array: pa.Array) -> None:
    """Raise InvalidTypeError for an array of another type than a key type takes."""
    if not right:
        raise InvalidTypeError(f"{type_name} takes {takes}, but the array is of {array.type}")


def is_timestamp(array: pa.Array, zoned: bool) -> bool:
    """Return whether an array has timestamps, with a zone or without."""
    return pa.types.is_timestamp(array.type) and (array.type.tz is not None) == zoned


def fixed_words(array: pa.Array) -> Array:
    """Return fixed-width values as unsigned numbers, those of more than 64 bits as words of 64."""
    bits = array.type.bit_width
    width = max(1, bits // 64)
    words = np.frombuffer(array.buffers()[1], WORD[min(bits, 64)])
    selected = words[array.offset * width : (array.offset + len(array)) * width]
    return selected.reshape(-1, width) if width > 1 else selected


def numbers(array: pa.Array) -> Array:
    """Return integers, floats, dates and times as numbers, without a copy."""
    words = fixed_words(array)
    if pa.types.is_floating(array.type):
        return words.view(f"f{words.itemsize}")
    return words if pa.types.is_unsigned_integer(array.type) else words.view(f"i{words.itemsize}")


def plain(array: pa.Array) -> pa.Array:
    """Return an array without dictionaries, views and runs: the plain layout of its values."""
    while True:
        if pa.types.is_dictionary(array.type):
            values = plain(array.dictionary)
            array = pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
        elif str(array.type) in ("string_view", "binary_view"):
            text = str(array.type) == "string_view"
            array = array.cast(pa.large_string() if text else pa.large_binary())
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def bytes_of(array: pa.Array) -> int:
    """Return the bytes of an array; for one with views, an upper bound."""
    try:
        return int(array.nbytes)
    except pa.ArrowTypeError:  # PyArrow (up to 23 at least) has no `nbytes` for views.
        return int(array.get_total_buffer_size())


def null_rows(array: pa.Array) -> Nulls | None:
    """Return the mask of the null rows of an array, or None where none is null."""
    if not array.null_count:
        return None
    return bools(array.is_null())


def on_values(array: pa.Array, nulls: Nulls | None, hasher: Callable[[pa.Array], Codes]) -> Codes:
    """Return the codes of `hasher` for the rows that are not null, and 0 for the others."""
    if nulls is None:
        return hasher(array)
    codes = np.zeros(len(array), dtype=np.uint32)

    def fill(values: pa.Array, rows: Rows) -> None:
        codes[rows] = hasher(values)

    for_values(array, nulls, fill)
    return codes


def for_values(array: pa.Array, nulls: Nulls | None, do: Callable[[pa.Array, Rows], None]) -> None:
    """Call `do` with the values that are not null and the index of their rows, if there are any.

    The row of a RowError that it raises becomes one of the whole array.
    """
    rows: Rows = slice(None) if nulls is None else np.flatnonzero(~nulls)
    values = array if nulls is None else _without_nulls(array, nulls)
    if not len(values):
        return
    try:
        do(values, rows)
    except RowError as error:
        raise error.at(error.row if nulls is None else int(rows[error.row])) from None


def _without_nulls(array: pa.Array, nulls: Nulls) -> pa.Array:
    try:
        return array.drop_null()
    except pa.ArrowNotImplementedError:  # Arrow has no filter for views or runs inside of others.
        runs = np.flatnonzero(np.diff(nulls, prepend=True, append=True)).reshape(-1, 2)
        slices = [array.slice(start, end - start) for start, end in runs.tolist()]
        return pa.concat_arrays([array[:0], *slices])


def elements_of(array: pa.Array, type_name: object) -> tuple[pa.Array, Array]:
    """Return the elements of lists without nulls, and the offsets of each list in them."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        offsets: Array = np.arange(len(array) + 1, dtype=np.int64) * size
        return array.values.slice(array.offset * size, len(array) * size), offsets
    is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    check_type(is_list, type_name, "lists", array)
    offsets = array.offsets.to_numpy().astype(np.int64)
    first = int(offsets[0])
    offsets -= first
    return array.values.slice(first, int(offsets[-1])), offsets


def of_element(error: RowError, offsets: Array) -> RowError:
    """Return the error of a list for that of one of its elements."""
    row = int(np.searchsorted(offsets, error.row, side="right")) - 1
    return error.at(row, f"element {error.row - int(offsets[row])}: ")


def limbs(array: pa.Array) -> tuple[Any, int]:
    """Return the unscaled values of decimals as 64-bit words, the lowest first, and the scale."""
    scale = array.type.scale
    is_wide = array.type.bit_width >= 128
    return fixed_words(array if is_wide else array.cast(pa.decimal128(38, scale))), scale
