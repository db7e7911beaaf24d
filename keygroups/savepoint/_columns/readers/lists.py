"""Readers of lists and maps: it is found where elements are, then all are read at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups.savepoint._columns.readers import abreast
from keygroups.savepoint._columns.readers.abreast import PassAll, SearchedBytes
from keygroups.savepoint._columns.readers.compounds import struct_of
from keygroups.savepoint._columns.readers.numbers import Numbers
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    Part,
    ReadColumn,
    check,
    check_apart,
    counts_at,
)
from keygroups.savepoint._state.skips import Passed, Skip, item_skip, passing
from keygroups.savepoint._state.stored_values import SEPARATOR

_SEPARATOR = SEPARATOR[0]
_MANY = 100  # keys of a map from which on Python's hashes matter, which an attacker may choose

ReadSpans = Callable[[bytes, Ints, Ints], pa.Array]
"""Reads values by where each starts and ends."""


class Element(NamedTuple):
    """The elements of lists: their reader, their size if it is fixed, and how to pass over one.

    `numbers` is how they are written if they are numbers, `passed` passes over several that follow
    one another, `pass_all` over several that lie apart.
    """

    part: Part
    size: int | None
    skip: Skip
    passed: Passed
    pass_all: PassAll
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
            octets = SearchedBytes(data)
            places, behind, ends = abreast.elements_at(
                octets, starts, counts, element.passed, element.pass_all
            )
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


def flagged_lists(data_type: pa.DataType, element: Element) -> ReadColumn:
    """Return the reader of lists: a count, then 0 for null or not 0 and the value of each."""

    def skip(data: bytes, pos: int) -> int:
        return element.skip(data, pos + 1) if data[pos] else pos + 1

    passed, pass_all = passing(skip), abreast.flagged(element.pass_all)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, behind, ends = abreast.elements_at(
            SearchedBytes(data), pos + 4, counts, passed, pass_all
        )
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

    passed, pass_all = passing(skip), abreast.unflagged(element.pass_all)

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, behind, ends = abreast.elements_at(
            SearchedBytes(data), pos + 4, counts, passed, pass_all
        )
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
            counts, places, behind = abreast.separated_at(
                SearchedBytes(data), starts, ends, element.skip, element.pass_all
            )
        else:
            size = element.size + 1  # The comma counts too.
            counts, rest = np.divmod(ends - starts + 1, size)
            check((ends > starts).all() and not rest.any())  # else there is none
            places = repeated(starts, counts, size)
            behind = places + element.size
            is_inner = np.ones(len(places), np.bool_)
            is_inner[np.cumsum(counts) - 1] = False
            check((np.frombuffer(data, np.uint8)[behind[is_inner]] == _SEPARATOR).all())
        return list_array(counts, element.read(data, places, behind), data_type)

    return read


def maps(data_type: pa.DataType, key: Element, value: Element) -> ReadColumn:
    """Return the reader of maps: a count, then key, whether the value is null, value."""

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        counts = counts_at(data, pos)
        places, behind, ends = items_at(data, pos + 4, counts, key, value)
        keys, middles = key.part.read(data, places)
        is_null = np.frombuffer(data, np.uint8)[middles] != 0
        values, read_ends = value.part.read_present(data, middles + 1, is_null)
        check(np.array_equal(read_ends, behind))
        return map_array(counts, keys, values, data_type), ends

    return read


def items_at(
    data: bytes, starts: Ints, counts: Ints, key: Element, value: Element
) -> tuple[Ints, Ints, Ints]:
    """Return the starts and ends of the items of maps, and the ends of the maps."""
    skip = item_skip(key.skip, value.skip)
    pass_item = abreast.item_of(key.pass_all, value.pass_all)
    return abreast.elements_at(SearchedBytes(data), starts, counts, passing(skip), pass_item)


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
