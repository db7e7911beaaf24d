"""The common ground of all readers of columns: places in bytes, nulls, and values read one by one.

A reader takes bytes and where each value starts in them, in order, and returns an array of Arrow
and where each value ends. It raises IndexError or ValueError where the bytes are no such values,
or where it is in doubt: they are read one by one then, with that reader's values and errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._serializers.base import Serializer
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.columns import ArrowColumn

Column = Any
"""An array of Arrow, or a list of Python's values; None where all are None."""
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
ReadColumn = Callable[[bytes, Ints], tuple[Column, Ints]]

_COUNT = np.dtype(">i4")


class Part(NamedTuple):
    """The reader of a part of values that have others too, and the type of its arrays."""

    data_type: pa.DataType
    read_column: ReadColumn

    def read(self, data: bytes, pos: Ints) -> tuple[pa.Array, Ints]:
        """Return an array of the type, and where the values end."""
        if not len(pos):
            return pa.nulls(0, self.data_type), pos
        column, ends = self.read_column(data, pos)
        if column is None:
            return pa.nulls(len(pos), self.data_type), ends
        if not isinstance(column, pa.Array):
            raise ValueError("texts that Arrow does not hold")
        return column, ends

    def read_present(self, data: bytes, pos: Ints, is_null: Bools) -> tuple[pa.Array, Ints]:
        """Read the values that are not null: a null starts and ends at its place."""
        if not is_null.any():
            return self.read(data, pos)
        is_present = ~is_null
        ends = pos.copy()
        array, ends[is_present] = self.read(data, pos[is_present])
        return spread(array, is_present), ends


def spread(array: pa.Array, is_present: Bools) -> pa.Array:
    """Return an array with its values where they are present, and nulls between them."""
    if not len(array):
        return pa.nulls(len(is_present), array.type)
    return array.take(pa.array(np.cumsum(is_present) - 1, mask=~is_present))


def numbers_at(data: bytes | NDArray[np.uint8], pos: Ints, written: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers that start somewhere, on no boundary.

    Raises IndexError beyond the end, ValueError where there are too few bytes for any.
    """
    places = len(data) - written.itemsize + 1
    return np.ndarray((places,), written, data, strides=(1,))[pos]


def counts_at(data: bytes, pos: Ints) -> Ints:
    """Return the counts at some places, which all together are at most those of the bytes."""
    counts: Ints = numbers_at(data, pos, _COUNT).astype(np.int64)
    check((counts >= 0).all() and counts.sum() <= len(data))
    return counts


def octets_at(data: bytes, pos: Ints) -> NDArray[np.uint8]:
    """Return the bytes at some places; raises IndexError beyond the end."""
    return np.frombuffer(data, np.uint8)[pos]


def check(condition: Any) -> None:
    """Raise ValueError where bytes are not as expected."""
    if not condition:
        raise ValueError("bytes that are left to the reader of single values")


def check_apart(data: bytes, starts: Ints, ends: Ints) -> None:
    """Raise ValueError unless each value ends before the next one starts, the last in `data`."""
    check((starts <= ends).all() and (ends[:-1] <= starts[1:]).all() and ends[-1] <= len(data))


def by_value(serializer: Serializer, column: ArrowColumn) -> ReadColumn:
    """Return the reader that reads one value after the other."""
    read_value = serializer.read
    assert read_value is not None  # whoever asks has checked it

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        starts = pos.tolist()
        values, ends = [], []
        for start, bound in zip(starts, [*starts[1:], len(data)]):
            value, end = read_value(data, start)
            check(end <= bound)  # or each might read all that is behind it
            values.append(value)
            ends.append(end)
        return arrow_array(column.convert(values), column.data_type), np.array(ends, np.int64)

    return read


def or_by_value(
    read_column: ReadColumn, serializer: Serializer, column: ArrowColumn
) -> ReadColumn:
    """Return a reader that reads what is odd value by value, at the cost of this column alone."""
    read_values = by_value(serializer, column)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        try:
            return read_column(data, pos)
        except (IndexError, ValueError):
            return read_values(data, pos)

    return read
