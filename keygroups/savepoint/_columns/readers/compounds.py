"""Readers of values with parts: POJOs, tuples, rows, and what may be null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from keygroups._values.rows import ROW_KINDS
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    Part,
    ReadColumn,
    check,
    octets_at,
)

EXACT, NULL = 2, 1  # flags of a POJO
_KINDS = pa.array(ROW_KINDS)


def struct_of(arrays: Sequence[pa.Array], data_type: pa.DataType, count: int) -> pa.Array:
    """Return the array of so many structs with these fields, of which there may be none."""
    return pa.Array.from_buffers(data_type, count, [None], children=arrays)


def pojos(data_type: pa.DataType, parts: Sequence[Part]) -> ReadColumn:
    """Return the reader of POJOs: flags, then each field, 00 and the value or 01 for null."""

    def read_fields(data: bytes, pos: Ints) -> tuple[pa.Array, Ints]:
        arrays = []
        for part in parts:
            is_null = octets_at(data, pos) != 0
            array, pos = part.read_present(data, pos + 1, is_null)
            arrays.append(array)
        return struct_of(arrays, data_type, len(pos)), pos

    whole = Part(data_type, read_fields)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        flags = octets_at(data, pos)
        is_null = flags == NULL
        check((is_null | (flags == EXACT)).all())  # else it is of a subclass
        return whole.read_present(data, pos + 1, is_null)

    return read


def tuples(data_type: pa.DataType, parts: Sequence[Part]) -> ReadColumn:
    """Return the reader of structs of one part after the other."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        arrays = []
        for part in parts:
            array, pos = part.read(data, pos)
            arrays.append(array)
        return struct_of(arrays, data_type, len(pos)), pos

    return read


def rows(data_type: pa.DataType, parts: Sequence[Part], has_row_kind: bool) -> ReadColumn:
    """Return the reader of Rows: a mask of a bit for each null, which may start with the kind."""
    kind_bits = 2 if has_row_kind else 0
    mask_size = (kind_bits + len(parts) + 7) // 8

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        masks = pos
        first = octets_at(data, masks)
        kinds = (first >> 7 | first >> 5 & 2) if has_row_kind else first & 0
        pos = pos + mask_size
        arrays = []
        for bit, part in enumerate(parts, kind_bits):
            is_null = octets_at(data, masks + bit // 8) & (0x80 >> bit % 8) != 0
            array, pos = part.read_present(data, pos, is_null)
            arrays.append(array)
        return struct_of([*arrays, row_kinds(kinds)], data_type, len(pos)), pos

    return read


def row_kinds(kinds: np.ndarray) -> pa.Array:
    """Return the names of row kinds."""
    if not kinds.any():
        return pa.repeat(_KINDS[0], len(kinds))
    check((kinds < len(ROW_KINDS)).all())
    return _KINDS.take(pa.array(kinds))


def nullables(part: Part, padding: int) -> ReadColumn:
    """Return the reader of values after a 0, or a 1 for null, with padding behind it."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        is_null = octets_at(data, pos) != 0
        array, ends = part.read_present(data, pos + 1, is_null)
        ends = ends + np.where(is_null, padding, 0)
        check(ends[-1] <= len(data))
        return array, ends

    return read


def options(part: Part) -> ReadColumn:
    """Return the reader of Options: a 1 and the value, or a 0 for none.

    A null within one is left to the reader of single values.
    """

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        is_none = octets_at(data, pos) == 0
        array, ends = part.read_present(data, pos + 1, is_none)
        check(array.null_count == is_none.sum())
        return array, ends

    return read


def branches(data_type: pa.DataType, parts: Sequence[Part]) -> ReadColumn:
    """Return the reader of Eithers: not 0 for the first part, 0 for the second one, its value."""
    first_part, second_part = parts

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        is_left = octets_at(data, pos) != 0
        first, ends = first_part.read_present(data, pos + 1, ~is_left)
        second, ends_of_right = second_part.read_present(data, pos + 1, is_left)
        ends = np.where(is_left, ends, ends_of_right)
        return struct_of([pa.array(is_left), first, second], data_type, len(pos)), ends

    return read
