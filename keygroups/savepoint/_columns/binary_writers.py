"""Writers of arrays of Flink SQL's rows, arrays and maps, for all values at once.

The bytes are those of `keygroups.binary_row`. A SlotWriter makes what the values of a field, or of
the elements of an array, are in their slots and in the variable part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups._values.rows import ROW_KINDS
from keygroups.binary_row import items_of
from keygroups.logical_types import LogicalType, array_header_size, row_header_size
from keygroups.savepoint._columns.byte_arrays import (
    Int64s,
    Pieces,
    assembled,
    bounds_of,
    octets_of,
    of_octets,
    records,
    runs,
    with_others,
    zeros,
)
from keygroups.savepoint._columns.scalar_writers import (
    FIRST_DAY,
    LAST_DAY,
    UnwrittenError,
    WritePieces,
    check_text,
    halves_of,
    micros_of,
)

_LOW_BITS = (1 << 8 * np.arange(8, dtype=np.uint64)) - np.uint64(1)  # masks of 0 to 7 bytes
_FLOAT_NAN = 0x7FC00000
_MOST_DIGITS = 38  # A decimal has them in 128 bits.
_DOUBLE_NAN = 0x7FF8000000000000


class Slots(NamedTuple):
    """The slots of values, and what is in the variable part.

    `words` are the slots as unsigned numbers. Where `is_apart` the word is the size of a value
    in the variable part, and its offset comes above it. There a value takes `room` bytes, which
    are the `parts` one after the other.
    """

    words: NDArray[Any]
    is_apart: NDArray[np.bool_] | None = None
    room: Int64s | None = None
    parts: Pieces = ()


class Written(NamedTuple):
    """The bytes of rows, arrays or maps, and the size of each."""

    sizes: Int64s
    pieces: Pieces


SlotWriter = Callable[[pa.Array], Slots]
"""A function from an array of values without nulls to their slots; raises UnwrittenError."""


def binary_writer(
    field: LogicalType, is_key: bool, is_projected: bool = False
) -> WritePieces | None:
    """Return the writer of values of a ROW, ARRAY or MAP with their sizes before them.

    It is None where values of a field are only written one by one. Rows of a column of a key type,
    `is_key`, have no `row_kind`, which is always +I. A ROW `is_projected` that is the key of an
    entry: a NULL of a long DECIMAL or TIMESTAMP takes room in it, but not in rows within.
    """
    if is_projected:
        write = _row_writer(field.fields, is_key, is_projected)
    else:
        write = _nested_writer(field, is_key)
    if write is None:
        return None

    def write_framed(array: pa.Array) -> Pieces:
        sizes, pieces = write(array)
        return [sizes.astype(">i4"), *pieces]

    return write_framed


def _nested_writer(field: LogicalType, is_key: bool) -> Callable[[pa.Array], Written] | None:
    if field.name == "ROW":
        return _row_writer(field.fields, is_key)
    if field.name == "ARRAY":
        [element] = field.fields
        return _array_writer(element, is_key)
    return _map_writer(items_of(field), is_key)


def _slot_writer(field: LogicalType, is_key: bool) -> SlotWriter | None:
    name = field.name
    if name in ("ROW", "ARRAY", "MAP", "MULTISET"):
        write = _nested_writer(field, is_key)
        return None if write is None else lambda array: _apart(*write(array))
    if name == "DECIMAL":
        return _long_decimals(field) if field.reserved else _compact_decimals(field)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        if not field.reserved:
            return _millis
        return _fine_timestamps if (field.precision or 0) > 6 else _timestamps
    return _SLOT_WRITERS.get(name)


# --- rows ---------------------------------------------------------------------------------


def _row_writer(
    fields: Sequence[LogicalType], is_key: bool, is_projected: bool = False
) -> Callable[[pa.Array], Written] | None:
    writers = [_slot_writer(field, is_key) for field in fields]
    if None in writers:
        return None
    rooms = [field.reserved if is_projected else 0 for field in fields]
    header = row_header_size(len(fields))
    width = header + 8 * len(fields)

    def write(array: pa.Array) -> Written:
        columns = array.flatten()
        kinds = None if is_key else row_kinds(columns.pop())
        words = np.zeros((len(array), width // 8), "<u8")
        octets = words.view(np.uint8)
        if kinds is not None:
            octets[:, 0] = kinds
        sizes = np.full(len(array), width, np.int64)
        parts: list[Any] = []
        for index, (writer, column, room) in enumerate(zip(writers, columns, rooms)):
            assert writer is not None
            if column.null_count:
                nulls = column.is_null().to_numpy(zero_copy_only=False)
                octets[:, 1 + index // 8] |= nulls.view(np.uint8) << index % 8
            slots = _with_nulls(writer, column, room)
            words[:, header // 8 + index] = _with_offsets(slots, sizes)
            if slots.room is not None:
                sizes = sizes + slots.room
                parts += slots.parts
        return Written(sizes, [records(octets), *parts])

    return write


def row_kinds(kinds: pa.Array) -> NDArray[np.uint8]:
    """Return the numbers of the kinds of rows; raises UnwrittenError for another text or null."""
    if pc.all(pc.equal(kinds, ROW_KINDS[0]), skip_nulls=False).as_py():
        return np.zeros(len(kinds), np.uint8)
    found = pc.index_in(kinds, pa.array(ROW_KINDS, kinds.type))
    if found.null_count:
        raise UnwrittenError
    numbers: NDArray[np.uint8] = found.to_numpy().astype(np.uint8)
    return numbers


def _with_nulls(write: SlotWriter, array: pa.Array, null_room: int = 0) -> Slots:
    """Return the slots of an array with nulls, which are 0.

    With `null_room` they have as many zeros in the variable part, where the values are too.
    """
    if not array.null_count:
        return write(array)
    words, is_apart, room, parts = write(array.drop_null())
    nulls = array.is_null()
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)

    def spread(values: NDArray[Any], null: int = 0) -> NDArray[Any]:
        whole = np.full(len(array), null, values.dtype)
        whole[is_valid] = values
        return whole

    if is_apart is None or room is None:
        return Slots(spread(words))
    all_parts = with_others(assembled(parts), nulls, bytes(null_room))
    are_apart = spread(is_apart, null_room > 0)
    return Slots(spread(words), are_apart, spread(room, null_room), [all_parts])


def _with_offsets(slots: Slots, offsets: Int64s) -> NDArray[Any]:
    """Return the words of slots, with the offsets of the values that are apart."""
    if slots.is_apart is None:
        return slots.words
    words = slots.words.astype(np.uint64)
    words[slots.is_apart] |= offsets[slots.is_apart].astype(np.uint64) << np.uint64(32)
    return words


# --- arrays and maps ----------------------------------------------------------------------


def _array_writer(element: LogicalType, is_key: bool) -> Callable[[pa.Array], Written] | None:
    writer = _ELEMENT_WRITERS.get(element.name) or _slot_writer(element, is_key)
    if writer is None:
        return None
    step = element.element_size

    def write(array: pa.Array) -> Written:
        return _write_elements(
            writer, step, array.flatten(), bounds_of(array.value_lengths().to_numpy())
        )

    return write


def _write_elements(writer: SlotWriter, step: int, elements: pa.Array, bounds: Int64s) -> Written:
    """Return the bytes of arrays whose elements are between bounds."""
    counts = np.diff(bounds)
    headers = array_header_size(counts)
    filled = headers + step * counts
    sizes = (filled + 7) // 8 * 8
    slots = _with_nulls(writer, elements)
    parts, whole_sizes, words = [], sizes, slots.words
    if slots.room is not None:
        before = bounds_of(slots.room)
        starts = np.repeat(sizes - before[bounds[:-1]], counts)
        words = _with_offsets(slots, starts + before[:-1])
        parts = [runs(assembled(slots.parts), bounds)]
        whole_sizes = sizes + np.diff(before[bounds])
    data = np.ascontiguousarray(words.astype(f"<u{step}"))
    nulls = _null_bits(elements, counts, bounds, headers - 4)
    fixed = of_octets(data, bounds * step)
    return Written(
        whole_sizes, [counts.astype("<i4"), nulls, fixed, zeros(sizes - filled), *parts]
    )


def _null_bits(elements: pa.Array, counts: Int64s, bounds: Int64s, sizes: Int64s) -> pa.Array:
    """Return the null bits of arrays, in as many bytes as `sizes` says."""
    if not elements.null_count:
        return zeros(sizes)
    starts = bounds_of(sizes)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(rows)) - bounds[rows]
    is_null = elements.is_null().to_numpy(zero_copy_only=False)
    octets = starts[rows[is_null]] + places[is_null] // 8
    data = np.zeros(starts[-1], np.uint8)
    np.bitwise_or.at(data, octets, (1 << places[is_null] % 8).astype(np.uint8))
    return of_octets(data, starts)


def _map_writer(
    items: Sequence[LogicalType], is_key: bool
) -> Callable[[pa.Array], Written] | None:
    """Return the writer of maps, whose keys and values have the types `items`."""
    sides = [
        (_ELEMENT_WRITERS.get(side.name) or _slot_writer(side, is_key), side.element_size)
        for side in items
    ]
    if any(writer is None for writer, _ in sides):
        return None

    def write(array: pa.Array) -> Written:
        items, bounds = map_items(array)
        keys, values = (
            _write_elements(writer, step, column, bounds)
            for (writer, step), column in zip(sides, items)
            if writer is not None
        )
        sizes = 4 + keys.sizes + values.sizes
        return Written(sizes, [keys.sizes.astype("<i4"), *keys.pieces, *values.pieces])

    return write


def map_items(array: pa.Array) -> tuple[tuple[pa.Array, pa.Array], Int64s]:
    """Return all keys and all values of maps, and the number of the first pair of each map.

    Raises UnwrittenError for a null key.
    """
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys, values = (side.slice(first, last - first) for side in (array.keys, array.items))
    if keys.null_count:
        raise UnwrittenError
    return (keys, values), array.offsets.to_numpy().astype(np.int64) - first


# --- fields -------------------------------------------------------------------------------


def _apart(sizes: Int64s, pieces: Pieces) -> Slots:
    """Return the slots of values that are in the variable part, with 8 bytes or a multiple."""
    padding = -sizes % 8
    parts = [*pieces, zeros(padding)] if padding.any() else pieces
    return Slots(sizes, np.ones(len(sizes), np.bool_), sizes + padding, parts)


def _numbers_as(dtype: str) -> SlotWriter:
    return lambda array: Slots(array.to_numpy().view(dtype))


def _booleans(array: pa.Array) -> Slots:
    return Slots(array.to_numpy(zero_copy_only=False).view(np.uint8))


def _floats(array: pa.Array) -> Slots:
    values = array.to_numpy()
    bits = values.view(np.uint32)
    if (np.isnan(values) & (bits != _FLOAT_NAN)).any():  # Python may hold it as another NaN
        raise UnwrittenError
    return Slots(bits)


def _nans_as(bits: str, nan: int) -> SlotWriter:
    """Return the writer of elements, which have one NaN."""

    def write(array: pa.Array) -> Slots:
        values = array.to_numpy()
        return Slots(np.where(np.isnan(values), np.array(nan, bits), values.view(bits)))

    return write


def _days(array: pa.Array) -> Slots:
    days = array.view(pa.int32()).to_numpy()
    dates = days.astype(np.int64).view("M8[D]")
    if len(days) and (dates.min() < FIRST_DAY or dates.max() > LAST_DAY):
        raise UnwrittenError
    return Slots(days.view(np.uint32))


def _bytes(array: pa.Array) -> Slots:
    """Return slots with up to 7 bytes in them, and 0x80 and their number in the highest byte."""
    data, bounds = octets_of(array)
    sizes = np.diff(bounds)
    is_apart = sizes > LogicalType.MAX_INLINE
    if is_apart.all():
        return _apart(sizes, [of_octets(data, bounds)])
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(len(data) + 1, "<u8", padded, strides=(1,))[bounds[:-1]]
    words &= _LOW_BITS[np.minimum(sizes, LogicalType.MAX_INLINE)]
    words |= (sizes | 0x80).astype(np.uint64) << np.uint64(56)
    if not is_apart.any():
        return Slots(words)
    words[is_apart] = sizes[is_apart]
    apart = np.where(is_apart, sizes, 0)
    values = of_octets(data[np.repeat(is_apart, sizes)], bounds_of(apart))
    padding = -apart % 8
    return Slots(words, is_apart, apart + padding, [values, zeros(padding)])


def _texts(array: pa.Array) -> Slots:
    check_text(*octets_of(array))
    return _bytes(array)


def _raw_values(array: pa.Array) -> Slots:
    data, bounds = octets_of(array)
    return _apart(np.diff(bounds), [of_octets(data, bounds)])


def _unscaled(array: pa.Array, field: LogicalType) -> tuple[Int64s, Int64s]:
    """Return the halves of unscaled numbers at the scale of a DECIMAL.

    A DataFrame may have a column of another scale: its 1.50 has the number 150, and is 1500 in a
    DECIMAL(10, 3). Raises UnwrittenError where digits would be lost.
    """
    if array.type.scale != field.scale:
        try:
            array = array.cast(pa.decimal128(_MOST_DIGITS, field.scale))
        except pa.ArrowInvalid:
            raise UnwrittenError from None
    return halves_of(array)


def _compact_decimals(field: LogicalType) -> SlotWriter:
    """Return the writer of decimals in a long, which Flink holds to no precision."""

    def write(array: pa.Array) -> Slots:
        low, high = _unscaled(array, field)
        if (high != low >> 63).any():
            raise UnwrittenError
        return Slots(low.view(np.uint64))

    return write


def _long_decimals(field: LogicalType) -> SlotWriter:
    """Return the writer of decimals in the variable part: the fewest bytes, padded to 16."""
    limit = 10 ** (field.precision or 0)
    least_high, least_low = divmod(1 - limit, 1 << 64)
    most_high, most_low = divmod(limit - 1, 1 << 64)

    def write(array: pa.Array) -> Slots:
        low, high = _unscaled(array, field)
        unsigned = np.ascontiguousarray(low).view(np.uint64)
        is_less = (high < least_high) | ((high == least_high) & (unsigned < np.uint64(least_low)))
        is_more = (high > most_high) | ((high == most_high) & (unsigned > np.uint64(most_low)))
        if (is_less | is_more).any():
            raise UnwrittenError
        return _apart_decimals(unsigned, high)

    return write


def _apart_decimals(low: NDArray[np.uint64], high: Int64s) -> Slots:
    """Return the slots of numbers of 128 bits: the fewest bytes that hold each, padded to 16."""
    sign = high >> 63
    low_bits, high_bits = low ^ sign.view(np.uint64), (high ^ sign).view(np.uint64)
    sizes = np.ones(len(low), np.int64)
    for shift in range(7, 64, 8):
        sizes += (low_bits >> np.uint64(shift) | high_bits) != 0
    for shift in range(7, 56, 8):
        sizes += high_bits >> np.uint64(shift) != 0
    moved = (128 - 8 * sizes).astype(np.uint64)  # Bits go left by so many: the zeros come behind.
    is_far, within = moved >= 64, moved % np.uint64(64)
    upper = np.where(is_far, low, high.view(np.uint64)) << within
    carried = low >> np.uint64(1) >> (np.uint64(63) - within)
    data = np.empty(len(low), [("high", ">u8"), ("low", ">u8")])
    data["high"] = np.where(is_far, upper, upper | carried)
    data["low"] = np.where(is_far, np.uint64(0), low << within)
    return Slots(sizes, np.ones(len(low), np.bool_), np.full(len(low), 16), [data])


def _millis(array: pa.Array) -> Slots:
    millis, rest = np.divmod(micros_of(array), 1_000)
    if rest.any():
        raise UnwrittenError
    return Slots(millis.view(np.uint64))


def _timestamps(array: pa.Array) -> Slots:
    millis, rest = np.divmod(micros_of(array), 1_000)
    return _moments(millis, rest * 1_000)


def _fine_timestamps(array: pa.Array) -> Slots:
    if pa.types.is_timestamp(array.type):  # A DataFrame's key is one of microseconds.
        return _timestamps(array)
    millis, nanos = array.flatten()
    if millis.null_count or nanos.null_count:
        raise UnwrittenError
    above = nanos.to_numpy().astype(np.int64)
    if ((above < 0) | (above >= 1_000_000)).any():
        raise UnwrittenError
    return _moments(millis.to_numpy(), above)


def _moments(millis: Int64s, nanos: Int64s) -> Slots:
    """Return the slots of timestamps, whose milliseconds are apart and nanoseconds in the slot."""
    size = len(millis)
    return Slots(nanos, np.ones(size, np.bool_), np.full(size, 8), [millis.astype("<i8")])


_SLOT_WRITERS: dict[str, SlotWriter] = {
    "BOOLEAN": _booleans,
    "TINYINT": _numbers_as("u1"),
    "SMALLINT": _numbers_as("u2"),
    "INT": _numbers_as("u4"),
    "BIGINT": _numbers_as("u8"),
    "FLOAT": _floats,
    "DOUBLE": _numbers_as("u8"),
    "DATE": _days,
    "TIME": _numbers_as("u4"),
    "INTERVAL_YEAR_MONTH": _numbers_as("u4"),
    "INTERVAL_DAY_TIME": _numbers_as("u8"),
    "CHAR": _texts,
    "VARCHAR": _texts,
    "BINARY": _bytes,
    "VARBINARY": _bytes,
    "RAW": _raw_values,
}
_ELEMENT_WRITERS: dict[str, SlotWriter] = {
    "FLOAT": _nans_as("u4", _FLOAT_NAN),
    "DOUBLE": _nans_as("u8", _DOUBLE_NAN),
}
