"""Readers of Flink SQL's rows, arrays and maps, as `keygroups._serializers.sql.values` has them.

Whole values are read by where each starts and ends, fields and elements by their slots: a slot is
the number itself, or says where the value is in the row or array around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from keygroups._serializers.sql.values import read_variant, reader_of
from keygroups._values.bitmaps import Bitmap
from keygroups.binary_row import items_of
from keygroups.logical_types import LogicalType, array_header_size, row_header_size
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.column_types import logical_column_of
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._columns.readers import numbers as nb
from keygroups.savepoint._columns.readers.compounds import row_kinds, struct_of
from keygroups.savepoint._columns.readers.decimals import decimals, wide_decimals
from keygroups.savepoint._columns.readers.lists import (
    ReadSpans,
    has_plain_keys,
    list_array,
    map_array,
    repeated,
)
from keygroups.savepoint._columns.readers.parts import (
    Bools,
    Column,
    Ints,
    ReadColumn,
    check,
    numbers_at,
    octets_at,
    spread,
)
from keygroups.savepoint._columns.readers.texts import at_places, frames

_SLOT, _COUNT = np.dtype("<u8"), np.dtype("<i4")
_MILLIS = np.dtype("<i8")
_NUMBERS = {
    "BOOLEAN": nb.Numbers("u1", nb.truths),
    "TINYINT": nb.Numbers("i1", nb.plain("i1")),
    "SMALLINT": nb.Numbers("<i2", nb.plain("i2")),
    "INT": nb.Numbers("<i4", nb.plain("i4")),
    "BIGINT": nb.Numbers("<i8", nb.plain("i8")),
    "FLOAT": nb.Numbers("<f4", nb.plain("f4")),
    "DOUBLE": nb.Numbers("<f8", nb.plain("f8")),
    "DATE": nb.Numbers("<i4", nb.days),
    "TIME": nb.Numbers("<i4", nb.plain("i4")),
    "INTERVAL_YEAR_MONTH": nb.Numbers("<i4", nb.plain("i4")),
    "INTERVAL_DAY_TIME": nb.Numbers("<i8", nb.plain("i8")),
}
_INLINE = ("CHAR", "VARCHAR", "BINARY", "VARBINARY", "BITMAP")
_ZONES = {"TIMESTAMP": None, "TIMESTAMP_LTZ": "UTC"}
_DECODE: dict[str, Callable[[bytes], Any]] = {"VARIANT": read_variant, "BITMAP": Bitmap}


class Holders(NamedTuple):
    """Rows or arrays: where each starts and ends, and the bytes that its values may still take."""

    starts: Ints
    ends: Ints
    room: Ints

    @classmethod
    def of(cls, starts: Ints, ends: Ints) -> Holders:
        """Return the holders that start and end at some places; no value of them is read yet."""
        return cls(starts, ends, ends - starts)

    def take(self, owners: Ints, sizes: Ints) -> None:
        """Take the bytes of values before these are read, as values that share bytes are many.

        `owners` are the numbers of what holds each. Raises ValueError where there are too few.
        """
        used = np.bincount(owners, sizes, len(self.room)).astype(np.int64)
        np.subtract(self.room, used, out=self.room)
        check((self.room >= 0).all())


ReadHeld = Callable[[bytes, Holders, Ints, Ints], pa.Array]
"""Reads values by what holds them, the numbers of those, and the slots of the values."""


class Slot(NamedTuple):
    """The reader of the values in slots: of numbers, or of values that are held elsewhere."""

    data_type: pa.DataType
    numbers: nb.Numbers | None = None
    read_held: ReadHeld | None = None

    def read(self, data: bytes, holders: Holders, owners: Ints, slots: Ints) -> pa.Array:
        """Read the values of some slots, in the rows or arrays of these numbers."""
        if not len(slots):
            return pa.nulls(0, self.data_type)
        if self.numbers is not None:
            return self.numbers.at(data, slots)
        assert self.read_held is not None
        return self.read_held(data, holders, owners, slots)

    def read_present(
        self, data: bytes, holders: Holders, owners: Ints, slots: Ints, is_null: Bools
    ) -> pa.Array:
        """Read those that are not null."""
        if not is_null.any():
            return self.read(data, holders, owners, slots)
        is_present = ~is_null
        array = self.read(data, holders, owners[is_present], slots[is_present])
        return spread(array, is_present)


def slot_of(field: LogicalType, is_key: bool) -> Slot:
    """Return the reader of slots of a type."""
    name, data_type = field.name, logical_column_of(field, is_key).data_type
    if name in _NUMBERS:
        return Slot(data_type, _NUMBERS[name])
    if name == "DECIMAL" and not field.reserved:
        make = decimals(field.precision or 0, field.scale or 0)
        return Slot(data_type, nb.Numbers("<i8", make))
    if name in _ZONES:
        if not field.reserved:
            return Slot(data_type, nb.Numbers("<i8", nb.instants(_ZONES[name])))
        return Slot(data_type, None, _timestamps(_ZONES[name], pa.types.is_struct(data_type)))
    return Slot(data_type, None, _held(whole_of(field, is_key), name in _INLINE))


def _timestamps(zone: str | None, is_fine: bool) -> ReadHeld:
    """Return the reader of timestamps with nanoseconds in the slot, milliseconds elsewhere."""

    def read(data: bytes, holders: Holders, owners: Ints, slots: Ints) -> pa.Array:
        slot = numbers_at(data, slots, _SLOT)
        places = holders.starts[owners] + (slot >> np.uint64(32)).astype(np.int64)
        check((places + 8 <= holders.ends[owners]).all())
        nanos = (slot & np.uint64(0xFFFFFFFF)).astype(np.int64)
        millis = numbers_at(data, places, _MILLIS).astype(np.int64)
        return nb.fine_timestamps(millis, nanos, zone, is_fine)

    return read


def _held(read_whole: ReadSpans, may_be_inline: bool) -> ReadHeld:
    """Return the reader of values of which slots have size and offset, or the few bytes."""

    def read(data: bytes, holders: Holders, owners: Ints, slots: Ints) -> pa.Array:
        slot = numbers_at(data, slots, _SLOT)
        sizes = (slot & np.uint64(0xFFFFFFFF)).astype(np.int64)
        places = holders.starts[owners] + (slot >> np.uint64(32)).astype(np.int64)
        if may_be_inline:
            is_inline = slot >> np.uint64(63) != 0
            inside = (slot >> np.uint64(56)).astype(np.int64) & 0x7F
            check((inside[is_inline] <= LogicalType.MAX_INLINE).all())
            sizes, places = np.where(is_inline, inside, sizes), np.where(is_inline, slots, places)
        check((places + sizes <= holders.ends[owners]).all())
        holders.take(owners, sizes)
        return read_whole(data, places, places + sizes)

    return read


def whole_of(field: LogicalType, is_key: bool) -> ReadSpans:
    """Return the reader of values of a type which are no numbers, by where they start and end."""
    name, column = field.name, logical_column_of(field, is_key)
    data_type = column.data_type
    if name == "DECIMAL":
        precision, scale = field.precision or 0, field.scale or 0
        return lambda data, starts, ends: wide_decimals(data, starts, ends, precision, scale)
    if name == "ROW":
        return sql_rows(field.fields, data_type, is_key)
    if name == "ARRAY":
        [element] = field.fields
        return sql_arrays(element, data_type, is_key)
    if name in ("MAP", "MULTISET") and has_plain_keys(data_type):
        return maps_of(items_of(field), data_type, is_key)
    decode = _DECODE.get(name) or reader_of(field)
    if decode is not None:
        return _by_value(decode, column)
    return lambda data, starts, ends: at_places(data, starts, ends, data_type)


def framed(read_whole: ReadSpans) -> ReadColumn:
    """Return the reader of frames, each with a whole value."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        starts, ends = frames(data, pos)
        return read_whole(data, starts, ends), ends

    return read


def _by_value(decode: Callable[[bytes], Any], column: ArrowColumn) -> ReadSpans:
    """Return the reader that reads one value after the other."""

    def read(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        spans = zip(starts.tolist(), ends.tolist())
        values = [decode(data[start:end]) for start, end in spans]
        return arrow_array(column.convert(values), column.data_type)

    return read


def sql_rows(fields: Sequence[LogicalType], data_type: pa.DataType, is_key: bool) -> ReadSpans:
    """Return the reader of rows: their kind and null bits, slots, what is held.

    Those of a key are of kind +I, and their column has no kinds.
    """
    header = row_header_size(len(fields))
    slots = [slot_of(field, is_key) for field in fields]

    def read(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        check((ends - starts >= header + 8 * len(slots)).all())
        kinds = octets_at(data, starts)
        has_nulls = _have_nulls(data, starts, header)
        arrays, holders, owners = [], Holders.of(starts, ends), np.arange(len(starts))
        for index, slot in enumerate(slots):
            places = (data, holders, owners, starts + (header + 8 * index))
            if has_nulls:
                bits = octets_at(data, starts + (1 + index // 8))
                arrays.append(slot.read_present(*places, bits & (1 << index % 8) != 0))
            else:
                arrays.append(slot.read(*places))
        if is_key:
            check(not kinds.any())
        else:
            arrays.append(row_kinds(kinds))
        return struct_of(arrays, data_type, len(starts))

    return read


def _have_nulls(data: bytes, starts: Ints, header: int) -> bool:
    """Return whether some null bit is set; the first byte is the kind."""
    nulls = numbers_at(data, starts, _SLOT) >> np.uint64(8)
    for place in range(8, header, 8):
        nulls = nulls | numbers_at(data, starts + place, _SLOT)
    return bool(nulls.any())


def sql_arrays(element: LogicalType, data_type: pa.DataType, is_key: bool) -> ReadSpans:
    """Return the reader of arrays: a count, null bits, slots of the element's size."""
    slot, size = slot_of(element, is_key), element.element_size

    def read(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        counts = numbers_at(data, starts, _COUNT).astype(np.int64)
        check((counts >= 0).all())
        headers = array_header_size(counts)
        firsts = starts + headers
        check((firsts + counts * size <= ends).all())
        is_null = _nulls_in_arrays(data, starts, firsts, counts)
        if slot.numbers is not None and is_null is None:
            spans = zip(firsts.tolist(), (firsts + counts * size).tolist())
            values = slot.numbers.of_bytes(b"".join([data[start:end] for start, end in spans]))
            return list_array(counts, values, data_type)
        owners = np.repeat(np.arange(len(counts)), counts)
        places = (data, Holders.of(starts, ends), owners, repeated(firsts, counts, size))
        values = slot.read(*places) if is_null is None else slot.read_present(*places, is_null)
        return list_array(counts, values, data_type)

    return read


def _nulls_in_arrays(data: bytes, starts: Ints, firsts: Ints, counts: Ints) -> Bools | None:
    """Return a mask of the elements that are null, None where no null bit is set."""
    spans = zip((starts + 4).tolist(), firsts.tolist())
    if not b"".join([data[start:end] for start, end in spans]).strip(b"\0"):
        return None
    numbers = repeated(np.zeros(len(counts), np.int64), counts, 1)
    places = np.repeat(starts + 4, counts) + numbers // 8
    is_null: Bools = octets_at(data, places) & np.left_shift(1, numbers % 8) != 0
    return is_null


def maps_of(items: Sequence[LogicalType], data_type: pa.DataType, is_key: bool) -> ReadSpans:
    """Return the reader of maps: the size of the array of keys, it, and the array of values."""
    read_keys, read_values = (
        whole_of(LogicalType("ARRAY", fields=(item,)), is_key) for item in items
    )

    def read(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        sizes = numbers_at(data, starts, _COUNT).astype(np.int64)
        middles = starts + 4 + sizes
        check((sizes >= 0).all() and (middles <= ends).all())
        keys = read_keys(data, starts + 4, middles)
        values = read_values(data, middles, ends)
        counts, others = (
            np.asarray(array.value_lengths()).astype(np.int64) for array in (keys, values)
        )
        check(np.array_equal(counts, others))
        return map_array(counts, keys.flatten(), values.flatten(), data_type)

    return read
