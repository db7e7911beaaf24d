"""Readers of lists and maps: a loop finds where elements are, then all are read at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups.savepoint._columns.readers.compounds import struct_of
from keygroups.savepoint._columns.readers.numbers import Numbers
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    Part,
    ReadColumn,
    check,
    check_apart,
    numbers_at,
)
from keygroups.savepoint._state.skips import Passed, Skip, passing
from keygroups.savepoint._state.stored_values import SEPARATOR

_COUNT = np.dtype(">i4")
_SEPARATOR = SEPARATOR[0]
_MANY = 100  # keys of a map from which on Python's hashes matter, which an attacker may choose

ReadSpans = Callable[[bytes, Ints, Ints], pa.Array]
"""Reads values by where each starts and ends."""


class Element(NamedTuple):
    """The elements of lists: their reader, their size if it is fixed, and how to pass over one.

    `numbers` is how they are written if they are numbers, `passed` passes over several.
    """

    part: Part
    size: int | None
    skip: Skip
    passed: Passed
    numbers: Numbers | None = None

    def read(self, data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        """Return the elements that start and end at some places."""
        array, read = self.part.read(data, starts)
        check(np.array_equal(read, ends))
        return array


def list_array(counts: Ints, values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return lists of so many values each, or maps of structs of key and value."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(data_type, len(counts), buffers, children=[values])


def counts_at(data: bytes, pos: Ints) -> Ints:
    """Return the counts at some places, which all together are at most those of the bytes."""
    counts: Ints = numbers_at(data, pos, _COUNT).astype(np.int64)
    check((counts >= 0).all() and counts.sum() <= len(data))
    return counts


def repeated(starts: Ints, counts: Ints, step: int) -> Ints:
    """Return the places of elements, so many from each start on, one step apart."""
    firsts = np.cumsum(counts) - counts
    places: Ints = np.repeat(starts - firsts * step, counts) + step * np.arange(counts.sum())
    return places


def lists(data_type: pa.DataType, element: Element) -> ReadColumn:
    """Return the reader of lists: a count, then the elements."""
    if element.numbers is not None:
        return lists_of_numbers(data_type, element.numbers)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts, starts = counts_at(data, pos), pos + 4
        if element.size is None:
            places, behind, ends = elements_at(data, starts, counts, element.passed)
        else:
            ends = starts + counts * element.size
            check_apart(data, starts, ends)
            places = repeated(starts, counts, element.size)
            behind = places + element.size
        return list_array(counts, element.read(data, places, behind), data_type), ends

    return read


def lists_of_numbers(data_type: pa.DataType, numbers: Numbers) -> ReadColumn:
    """Return the reader of lists of numbers, which are decoded where they lie together."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts, starts = counts_at(data, pos), pos + 4
        ends = starts + counts * numbers.size
        check_apart(data, starts, ends)
        spans = zip(starts.tolist(), ends.tolist())
        values = numbers.of_bytes(b"".join([data[start:end] for start, end in spans]))
        return list_array(counts, values, data_type), ends

    return read


def elements_at(
    data: bytes, starts: Ints, counts: Ints, passed: Passed
) -> tuple[Ints, Ints, Ints]:
    """Return the starts and ends of elements, and the ends of their lists."""
    places: list[int] = []
    bounds = [*starts[1:].tolist(), len(data)]
    for pos, count, bound in zip(starts.tolist(), counts.tolist(), bounds):
        places.append(pos)
        places += passed(data, pos, count)
        check(places[-1] <= bound)
    ends = np.array(places, np.int64)
    lasts = np.cumsum(counts + 1) - 1
    is_behind = np.ones(len(ends), np.bool_)
    is_behind[lasts - counts] = False
    is_place = np.ones(len(ends), np.bool_)
    is_place[lasts] = False
    return ends[is_place], ends[is_behind], ends[lasts]


def flagged_lists(data_type: pa.DataType, element: Element) -> ReadColumn:
    """Return the reader of lists: a count, then 0 for null or not 0 and the value of each."""

    def skip(data: bytes, pos: int) -> int:
        return element.skip(data, pos + 1) if data[pos] else pos + 1

    passed = passing(skip)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, behind, ends = elements_at(data, pos + 4, counts, passed)
        is_null = np.frombuffer(data, np.uint8)[places] == 0
        values, read_ends = element.part.read_present(data, places + 1, is_null)
        check(np.array_equal(read_ends, behind))
        return list_array(counts, values, data_type), ends

    return read


def sets(data_type: pa.DataType, element: Element) -> ReadColumn:
    """Return the reader of sets: a count, then 0 and the value of each element, in their order.

    Those with a null, which are in another order, are left to the reader of single values.
    """

    def skip(data: bytes, pos: int) -> int:
        check(not data[pos])
        return element.skip(data, pos + 1)

    passed = passing(skip)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, behind, ends = elements_at(data, pos + 4, counts, passed)
        values = element.read(data, places + 1, behind)
        check(not values.null_count)
        numbers = pa.array(np.repeat(np.arange(len(counts)), counts))
        order = pc.sort_indices(
            pa.table({"set": numbers, "value": values}),
            [("set", "ascending"), ("value", "ascending")],
        )
        return list_array(counts, values.take(order), data_type), ends

    return read


def is_sorted_alike(data_type: pa.DataType) -> bool:
    """Return whether Arrow sorts elements of sets as Python does, none of which is NaN."""
    return not (pa.types.is_nested(data_type) or pa.types.is_floating(data_type))


def separated(data_type: pa.DataType, element: Element) -> ReadSpans:
    """Return the reader of the elements of a LIST, with a comma between two."""

    def read(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
        if element.size is None:
            counts, places, behind = _between_commas(data, starts, ends, element.skip)
        else:
            size = element.size + 1  # The comma counts too.
            counts, rest = np.divmod(ends - starts + 1, size)
            check((counts > 0).all() and not rest.any())
            places = repeated(starts, counts, size)
            behind = places + element.size
            is_inner = np.ones(len(places), np.bool_)
            is_inner[np.cumsum(counts) - 1] = False
            check((np.frombuffer(data, np.uint8)[behind[is_inner]] == _SEPARATOR).all())
        return list_array(counts, element.read(data, places, behind), data_type)

    return read


def _between_commas(data: bytes, starts: Ints, ends: Ints, skip: Skip) -> tuple[Ints, Ints, Ints]:
    """Return the number of elements of each list, and the starts and ends of these."""
    counts: list[int] = []
    places: list[int] = []
    behind: list[int] = []
    for pos, end in zip(starts.tolist(), ends.tolist()):
        before = len(places)
        while True:
            places.append(pos)
            pos = skip(data, pos)
            behind.append(pos)
            if pos >= end:
                break
            check(data[pos] == _SEPARATOR)
            pos += 1
        check(pos == end)
        counts.append(len(places) - before)
    return np.array(counts, np.int64), np.array(places, np.int64), np.array(behind, np.int64)


def maps(data_type: pa.DataType, key: Element, value: Element) -> ReadColumn:
    """Return the reader of maps: a count, then key, whether the value is null, value."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, middles, behind, ends = items_at(data, pos + 4, counts, key.skip, value.skip)
        keys = key.read(data, places, middles)
        is_null = np.frombuffer(data, np.uint8)[middles] != 0
        values, read_ends = value.part.read_present(data, middles + 1, is_null)
        check(np.array_equal(read_ends, behind))
        return map_array(counts, keys, values, data_type), ends

    return read


def items_at(
    data: bytes, starts: Ints, counts: Ints, skip_key: Skip, skip_value: Skip
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the starts of keys, the ends of keys and values, and those of maps."""
    middles: list[int] = []

    def skip(data: bytes, pos: int) -> int:
        pos = skip_key(data, pos)
        middles.append(pos)
        return pos + 1 if data[pos] else skip_value(data, pos + 1)

    places, behind, ends = elements_at(data, starts, counts, passing(skip))
    return places, np.array(middles, np.int64), behind, ends


def map_array(counts: Ints, keys: pa.Array, values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return maps of so many items each, which have each key once."""
    check(not keys.null_count)
    _check_distinct(counts, keys)
    of_items = pa.struct([data_type.key_field, data_type.item_field])
    items = struct_of([keys, values], of_items, len(keys))
    return list_array(counts, items, data_type)


def has_plain_keys(data_type: pa.DataType) -> bool:
    """Return whether the keys of a map can be compared here."""
    return not pa.types.is_nested(data_type.key_type)


def _check_distinct(counts: Ints, keys: pa.Array) -> None:
    """Refuse maps in which two keys may be equal in Python, or have one hash too often."""
    if not len(counts) or counts.max() <= 1:
        return
    check(counts.max() <= _MANY or _is_plainly_hashed(keys.type))
    if pa.types.is_floating(keys.type):
        keys = pc.add(keys, pa.scalar(0, keys.type))  # -0.0 is 0.0
    codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    maps = np.repeat(np.arange(len(counts)), counts)
    numbers = maps * (int(codes.max()) + 1) + codes
    in_order = np.sort(numbers)
    check((in_order[1:] != in_order[:-1]).all())


def _is_plainly_hashed(data_type: pa.DataType) -> bool:
    """Return whether few values of a type have the same hash in Python."""
    of_a_few = (pa.types.is_string, pa.types.is_binary, pa.types.is_integer, pa.types.is_boolean)
    return any(is_of(data_type) for is_of in of_a_few)
