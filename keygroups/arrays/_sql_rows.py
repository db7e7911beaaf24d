"""Rows of Flink SQL in arrays: BinaryRowData.hashCode of keys, and nested rows as bytes.

The layout is that of `keygroups.binary_row`: 8-byte words of the header, a slot a field, and the
variable part. No row of keys is put together; header and slots are words in arrays, and murmur3
goes on over the variable parts, together for the rows in which they have the same size. A nested
ROW or ARRAY has bytes: all rows of a column are written at once, one field after the other, into
one buffer of 64-bit words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from mmh3 import hash as murmur3

from keygroups import types
from keygroups.arrays._kernels import MASK32, Array, Codes, State, Word, murmur_end, murmur_word
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
    FieldSlots,
    VariablePart,
    by_size,
    check_nulls,
    header_words,
    scalar_field,
)
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType, array_header_size

_32 = np.uint64(32)
_SEED = 42
_LONG = 2_048  # bytes of a row from which a call of mmh3 for it alone is faster


def sql_row_codes(columns: list[pa.Array], key_type: types.SQL_ROW, rows: int) -> Codes:
    """Return BinaryRowData.hashCode of rows, by their columns."""
    fields = _fields(columns, key_type.fields, Container.KEY)
    words: list[Word] = []
    header = header_words(fields)
    for word in header:
        words += [None, None] if word is None else _halves(word)
    lengths = np.full(rows, 8 * (len(header) + len(fields)), dtype=np.int64)
    for field in fields:
        low, high = _halves(field.slots)
        if field.part is not None:
            sizes = field.part.sizes
            high = np.where(sizes > 0, lengths, high).astype(np.uint32)
            lengths += sizes
        words += [low, high]
    spare = np.empty(rows, dtype=np.uint32)
    state: State = _SEED
    for half in words:
        state = murmur_word(state, half, spare)
    if isinstance(state, int):  # A row without fields is the same header in all rows.
        state = np.full(rows, state, dtype=np.uint32)
    parts = [field.part for field in fields if field.part is not None]
    if not parts:
        return murmur_end(state, 4 * len(words), spare)
    return _hash_parts(state, parts, words, lengths)


def _hash_parts(
    state: Codes, parts: list[VariablePart], words: list[Word], lengths: Array
) -> Codes:
    """Return the hashes of rows: the states go on over the variable parts.

    Rows whose parts have about the same size go on together, `by_size`; long rows are joined and
    hashed one by one.
    """
    is_long = lengths > _LONG
    for part in parts:
        sizes = np.where(is_long, 0, part.sizes)
        for rows, room in by_size(sizes):
            # The longest rows come first, so that those with a word left are always a prefix.
            chosen = rows[np.argsort(-sizes[rows], kind="stable")]
            state[chosen] = _hash_part(state[chosen], part.take(chosen, room), sizes[chosen] // 4)
    spare = np.empty(len(state), dtype=np.uint32)
    codes = murmur_end(state, lengths.astype(np.uint32), spare)
    for row in np.flatnonzero(is_long).tolist():
        data = b"".join(_word_bytes(word, row) for word in words)
        for part in parts:
            size = int(part.sizes[row])
            data += part.take(np.array([row]), size).tobytes() if size else b""
        codes[row] = murmur3(data, _SEED) & MASK32
    return codes


def _hash_part(state: Codes, part: Codes, counts: Array) -> Codes:
    """Return the states after the words of a part, `counts` of them a row, in falling order.

    With counts 4, 4, 3 the first three words advance all rows, and the fourth the first two.
    """
    columns = np.ascontiguousarray(part.T)
    spare = np.empty(len(state), dtype=np.uint32)
    fewest = int(counts[-1])
    for index in range(int(counts[0])):
        active = len(counts)
        if index >= fewest:
            active -= int(np.searchsorted(counts[::-1], index, side="right"))
        mixed = murmur_word(state[:active], columns[index, :active], spare[:active])
        if active == len(state):
            assert not isinstance(mixed, int)
            state = mixed
        else:
            state[:active] = mixed
    return state


def _word_bytes(word: Word, row: int) -> bytes:
    return (0 if word is None else int(word[row])).to_bytes(4, "little")


def _halves(words: Array) -> list[Codes]:
    halves = np.ascontiguousarray(words).view(np.uint32)
    return [halves[::2], halves[1::2]]


# --- nested rows and arrays -------------------------------------------------------------


def _fields(
    columns: Sequence[pa.Array], logical_types: Sequence[LogicalType], container: Container
) -> list[FieldSlots]:
    """Return the fields of rows by their columns."""
    fields = []
    for index, (column, logical_type) in enumerate(zip(columns, logical_types)):
        try:
            fields.append(_field(plain(column), logical_type, container))
        except RowError as error:
            raise error.at(error.row, f"field {index}: ") from None
    return fields


def _field(array: pa.Array, logical_type: LogicalType, container: Container) -> FieldSlots:
    if logical_type.name not in ("ROW", "ARRAY"):
        return scalar_field(array, logical_type, container)
    array, nulls = check_nulls(array, logical_type)
    sizes = np.zeros(len(array), dtype=np.int64)
    words: Array = np.array([], dtype=np.uint64)

    def fill(values: pa.Array, chosen: Rows) -> None:
        nonlocal words
        write = _rows if logical_type.name == "ROW" else _arrays
        words, sizes[chosen] = write(values, logical_type)

    for_values(array, nulls, fill)
    starts = (np.cumsum(sizes) - sizes) // 8

    def take(chosen: Array, size: int) -> Codes:
        places = starts[chosen, None] + np.arange(size // 8)
        return words.take(places, mode="clip").view(np.uint32)

    return FieldSlots(sizes.astype(np.uint64), nulls, VariablePart(sizes, take))


def _rows(array: pa.Array, logical_type: LogicalType) -> tuple[Array, Array]:
    """Return rows, none of them null, as 64-bit words one after the other, and their bytes."""
    check_type(pa.types.is_struct(array.type), f"{logical_type} of SQL_ROW", "structs", array)
    columns, arity = array.flatten(), len(logical_type.fields)
    if len(columns) != arity:
        raise InvalidValueError(
            f"key of type {logical_type} must be {arity} columns, got {len(columns)}"
        )
    fields = _fields(columns, logical_type.fields, Container.ROW)
    header = header_words(fields)
    ends = np.full(len(array), 8 * (len(header) + arity), dtype=np.int64)
    offsets = []
    for field in fields:
        offsets.append(ends)
        ends = ends if field.part is None else ends + field.part.sizes
    starts = np.cumsum(ends) - ends
    words = np.zeros(ends.sum(), dtype=np.uint8).view(np.uint64)
    slots = [_place(field, offset, starts, words) for field, offset in zip(fields, offsets)]
    for index, word in enumerate([*header, *slots]):
        if word is not None:
            words[starts // 8 + index] = word
    return words, ends


def _place(field: FieldSlots, offsets: Array, starts: Array, words: Array) -> Array:
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
    """Return arrays, none of them null, as 64-bit words one after the other, and their bytes.

    ARRAY<INT> of 5 and null is 16 bytes: 02000000, null bits 02000000, 05000000, 00000000.
    """
    elements, bounds = elements_of(array, f"{logical_type} of SQL_ROW")
    [element] = logical_type.fields
    field = FieldSlots(np.array([], dtype=np.uint64), None)
    try:
        if len(elements):
            field = _field(plain(elements), element, Container.ARRAY)
    except RowError as error:
        raise of_element(error, bounds) from None
    counts, step = np.diff(bounds), element.element_size
    headers = array_header_size(counts)
    fixed = (headers + step * counts + 7) & -8
    row = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(row)) - bounds[row]
    tails = np.zeros(len(row) + 1, dtype=np.int64)  # bytes of the parts of all elements before
    if field.part is not None:
        np.cumsum(field.part.sizes, out=tails[1:])
    sizes = fixed + np.diff(tails[bounds])
    starts = np.cumsum(sizes) - sizes
    words = np.zeros(sizes.sum(), dtype=np.uint8).view(np.uint64)
    slots = _place(field, fixed[row] + tails[:-1] - tails[bounds[row]], starts[row], words)
    words.view(np.uint32)[starts // 4] = counts
    if field.nulls is not None:
        byte, bit = starts[row] + 4 + index // 8, np.left_shift(1, index % 8)
        np.add.at(words.view(np.uint8), byte[field.nulls], bit[field.nulls].astype(np.uint8))
    at = starts[row] + headers[row] + step * index
    if step < 8:
        unsigned = words.view(f"u{step}")
        unsigned[at // step] = slots.astype(unsigned.dtype)
    else:  # After the header an element of 8 bytes is aligned to 4 only.
        halves = words.view(np.uint32)
        halves[at // 4], halves[at // 4 + 1] = slots.view(np.uint32).reshape(-1, 2).T
    return words, sizes
