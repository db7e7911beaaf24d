"""ROW and ARRAY of Flink SQL in arrays: the bytes that they have in the variable part of a row.

The layout is that of `keygroups.binary_row`. All rows of a column are written at once, one field
after the other, into one buffer of 64-bit words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from keygroups.arrays._kernels import Array, Codes
from keygroups.arrays._rows import (
    RowError,
    Rows,
    check_type,
    elements_of,
    for_values,
    of_element,
    plain,
)
from keygroups.arrays._sql_fields import (
    Container,
    Field,
    Part,
    by_size,
    check_nulls,
    header_words,
    scalar_field,
)
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType

_32 = np.uint64(32)


def fields_of(
    columns: Sequence[pa.Array], logical_types: Sequence[LogicalType], container: Container
) -> list[Field]:
    """Return the fields of rows by their columns."""
    fields = []
    for index, (column, logical_type) in enumerate(zip(columns, logical_types)):
        try:
            fields.append(_field(plain(column), logical_type, container))
        except RowError as error:
            raise error.at(error.row, f"field {index}: ") from None
    return fields


def _field(array: pa.Array, logical_type: LogicalType, container: Container) -> Field:
    if logical_type.name not in ("ROW", "ARRAY"):
        return scalar_field(array, logical_type, container)
    array, nulls = check_nulls(array, logical_type)
    sizes = np.zeros(len(array), dtype=np.int64)
    words: Array = np.zeros(0, dtype=np.uint64)

    def fill(values: pa.Array, chosen: Rows) -> None:
        nonlocal words
        write = _rows if logical_type.name == "ROW" else _arrays
        words, sizes[chosen] = write(values, logical_type)

    for_values(array, nulls, fill)
    starts = (np.cumsum(sizes) - sizes) // 8

    def take(chosen: Array, size: int) -> Codes:
        places = np.arange(size // 8)
        found = words.take(starts[chosen, None] + places, mode="clip")
        found[8 * places >= sizes[chosen, None]] = 0
        return found.view(np.uint32)

    return Field(sizes.astype(np.uint64), nulls, Part(sizes, take))


def _rows(array: pa.Array, logical_type: LogicalType) -> tuple[Array, Array]:
    """Return the bytes of rows, none of them null, as words, and how many bytes each has."""
    check_type(pa.types.is_struct(array.type), f"{logical_type} of SQL_ROW", "structs", array)
    columns, arity = array.flatten(), len(logical_type.fields)
    if len(columns) != arity:
        raise InvalidValueError(
            f"key of type {logical_type} must be {arity} columns, got {len(columns)}"
        )
    fields = fields_of(columns, logical_type.fields, Container.ROW)
    header = header_words(fields)
    ends = np.full(len(array), 8 * (len(header) + arity), dtype=np.int64)
    offsets = []
    for field in fields:
        offsets.append(ends)
        ends = ends if field.part is None else ends + field.part.sizes
    starts = np.cumsum(ends) - ends
    words = np.zeros(int(ends.sum()) // 8, dtype=np.uint64)
    slots = [_place(field, offset, starts, words) for field, offset in zip(fields, offsets)]
    for index, word in enumerate([*header, *slots]):
        if word is not None:
            words[starts // 8 + index] = word
    return words, ends


def _place(field: Field, offsets: Array, starts: Array, words: Array) -> Array:
    """Write a field's part into the variable parts, and return its slots with the offsets."""
    part = field.part
    if part is None:
        return field.slots
    for chosen, room in by_size(part.sizes):
        places = np.arange(room // 8)
        inside = 8 * places < part.sizes[chosen, None]
        to = ((starts + offsets)[chosen, None] // 8 + places)[inside]
        words[to] = np.ascontiguousarray(part.take(chosen, room)).view(np.uint64)[inside]
    slots: Array = field.slots | np.where(part.sizes > 0, offsets, 0).astype(np.uint64) << _32
    return slots


def _arrays(array: pa.Array, logical_type: LogicalType) -> tuple[Array, Array]:
    """Return the bytes of arrays, none of them null, as words, and how many bytes each has."""
    elements, bounds = elements_of(array, f"{logical_type} of SQL_ROW")
    [element] = logical_type.fields
    field = Field(np.zeros(0, dtype=np.uint64), None)
    try:
        if len(elements):
            field = _field(plain(elements), element, Container.ARRAY)
    except RowError as error:
        raise of_element(error, bounds) from None
    counts, step = np.diff(bounds), element.element_size
    headers = 4 + (counts + 31) // 32 * 4
    fixed = (headers + step * counts + 7) & -8
    row = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(row)) - bounds[row]
    tails = np.zeros(len(row) + 1, dtype=np.int64)  # how much of the parts is before each element
    if field.part is not None:
        np.cumsum(field.part.sizes, out=tails[1:])
    sizes = fixed + np.diff(tails[bounds])
    starts = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()) // 8, dtype=np.uint64)
    slots = _place(field, fixed[row] + tails[:-1] - tails[bounds[row]], starts[row], words)
    words.view(np.uint32)[starts // 4] = counts
    if field.nulls is not None:
        of_null, bit = starts[row] + 4 + index // 8, np.left_shift(1, index % 8)
        np.add.at(words.view(np.uint8), of_null[field.nulls], bit[field.nulls].astype(np.uint8))
    at = starts[row] + headers[row] + step * index
    if step < 8:
        unsigned = words.view(f"u{step}")
        unsigned[at // step] = slots.astype(unsigned.dtype)
    else:  # which begins at any 4 bytes
        halves = words.view(np.uint32)
        halves[at // 4], halves[at // 4 + 1] = slots.view(np.uint32).reshape(-1, 2).T
    return words, sizes
