"""The parts of entries as columns, and entries of the hashmap backend's own format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from keygroups._serializers.base import Serializer, total_size
from keygroups._serializers.data_input import MOST_REPEATED
from keygroups._serializers.scalars import read_count
from keygroups.savepoint._columns.readers.abreast import SearchedBytes
from keygroups.savepoint._columns.readers.lists import items_at
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    ReadColumn,
    check,
    counts_at,
)
from keygroups.savepoint._columns.readers.readers import element_of, reader_of
from keygroups.savepoint._state.header import StateDescriptor, stored_serializer
from keygroups.savepoint._state.layouts import EntryFields
from keygroups.savepoint._state.patterns import item_pattern, pattern_of, pattern_scan
from keygroups.savepoint._state.scans import native_scan, skip_scan
from keygroups.savepoint._state.skips import Scan, in_a_row, item_skip, skip_of

_KEYS = ("key", "user_key")  # whose rows of SQL are of kind +I, and have no column of it

Columns = dict[str, Column]
Reads = Sequence[tuple[str, ReadColumn]]


def reads_of(parts: Sequence[tuple[str, Serializer]] | None) -> Reads | None:
    """Return the readers of parts, None where one has none."""
    if parts is None:
        return None
    reads = [(name, reader_of(part, name in _KEYS)) for name, part in parts]
    known = [(name, read) for name, read in reads if read is not None]
    return known if len(known) == len(reads) else None


def decode(parts: Reads, data: bytes, pos: Ints) -> tuple[Columns, Ints]:
    """Read parts that follow one another; return their columns, and where they end."""
    columns = {}
    for name, read in parts:
        column, pos = read(data, pos)
        if column is not None:
            columns[name] = column
    return columns, pos


def decode_values(
    parts: Reads, before_value: bytes, data: bytes, starts: Ints, ends: Ints
) -> Columns:
    """Read the parts of values, a null where another mark than `before_value` is before them.

    After a null its serialized form may follow, which the hashmap backend writes. Raises
    ValueError where a value does not end at its end.
    """
    if not before_value:
        columns, read = decode(parts, data, starts)
        check(np.array_equal(read, ends))
        return columns
    check((starts < ends).all())
    is_present = np.frombuffer(data, np.uint8)[starts] == before_value[0]
    if not is_present.any():
        return {}
    columns, read = decode(parts, data, starts[is_present] + len(before_value))
    check(np.array_equal(read, ends[is_present]))
    if is_present.all():
        return columns
    places = pa.array(np.cumsum(is_present) - 1, mask=~is_present)
    return {name: taken(column, places) for name, column in columns.items()}


def taken(column: Column, places: pa.Array) -> Column:
    """Return the values at some places, None at those that are null."""
    if isinstance(column, list):
        return [None if place is None else column[place] for place in places.to_pylist()]
    return column.take(places)


class Native(NamedTuple):
    """Finds entries in the hashmap backend's own format, and decodes them.

    `decode` takes where they start and end. It returns their columns, and of which of them each
    row is: of a map that stands in one piece there is a row for each user key.
    """

    scan: Scan
    decode: Callable[[bytes, Ints, Ints], tuple[Columns, Ints]]


def native_of(state: StateDescriptor, fields: EntryFields) -> Native | None:
    """Return a scan and a decoder of native entries, None where they are read one by one."""
    if state.kind == "MAP":
        return _maps(state, fields)
    reads = reads_of(fields.native)
    if reads is None or fields.native is None:
        return None

    def decode_entries(data: bytes, starts: Ints, ends: Ints) -> tuple[Columns, Ints]:
        columns, read = decode(reads, data, starts)
        check(np.array_equal(read, ends))
        columns["bytes"] = pa.array(ends - starts)
        return columns, np.arange(len(starts))

    return Native(_entry_scan(fields.native), decode_entries)


def _entry_scan(parts: Sequence[tuple[str, Serializer]]) -> Scan:
    """Return a Scan for entries of any parts that are read here; see `native_scan`."""
    serializers = [serializer for _, serializer in parts]
    scan = native_scan(parts) or skip_scan(in_a_row(serializers))
    return (
        scan
        if total_size(serializers) is not None
        else pattern_scan(pattern_of(serializers), scan)
    )


class ItemPlaces(NamedTuple):
    """The places where items of maps start, where their user keys end, and where they end."""

    starts: Ints
    middles: Ints
    ends: Ints


FindItems = Callable[[bytes, Ints, Ints], tuple[ItemPlaces, Ints]]
"""Finds the items of maps from their counts to their ends: where these are, and of which map each
is. Raises ValueError where a map does not end at its end."""


def map_items(state: StateDescriptor) -> FindItems:
    """Return the function that finds the items of native entries, which are read here."""
    assert state.user_key_serializer is not None
    key, value = element_of(state.user_key_serializer), element_of(stored_serializer(state))

    def find_items(data: bytes, pos: Ints, ends: Ints) -> tuple[ItemPlaces, Ints]:
        counts = counts_at(data, pos)
        rows = np.repeat(np.arange(len(pos)), counts)
        places, behind, read = items_at(data, pos + 4, counts, key, value)
        check(np.array_equal(read, ends))
        middles = key.pass_all(SearchedBytes(data), places) if len(rows) else places
        return ItemPlaces(places, middles, behind), rows

    return find_items


def _maps(state: StateDescriptor, fields: EntryFields) -> Native | None:
    """Return a scan and a decoder of maps: namespace, key, a count, user keys and values."""
    before = [("namespace", state.namespace_serializer), ("key", state.key_serializer)]
    assert state.user_key_serializer is not None
    starts_of, values_of = reads_of(before), reads_of(fields.value)
    items_of = reads_of([("user_key", state.user_key_serializer)])
    if starts_of is None or items_of is None or values_of is None:
        return None
    find_items = map_items(state)

    def decode_maps(data: bytes, starts: Ints, ends: Ints) -> tuple[Columns, Ints]:
        shared, pos = decode(starts_of, data, starts)
        items, rows = find_items(data, pos, ends)
        columns: Columns = {}
        if len(rows):
            columns, middles = decode(items_of, data, items.starts)
            columns |= decode_values(values_of, fields.before_value, data, middles, items.ends)
        columns |= {name: taken(column, pa.array(rows)) for name, column in shared.items()}
        sizes = items.ends - items.starts
        is_first = np.diff(rows, prepend=-1) > 0
        sizes[is_first] += (pos + 4 - starts)[
            rows[is_first]
        ]  # the first one counts what all share
        columns["bytes"] = pa.array(sizes)
        return columns, rows

    stored = stored_serializer(state)
    parts = [part for _, part in before]
    return Native(_map_scan(parts, state.user_key_serializer, stored), decode_maps)


def _map_scan(before: Sequence[Serializer], user_key: Serializer, value: Serializer) -> Scan:
    """Return the Scan for maps of which namespace and key are not too long to be repeated."""
    skip_start, items = in_a_row(before), skip_scan(item_skip(skip_of(user_key), skip_of(value)))
    items = pattern_scan(item_pattern(user_key, value), items)

    def skip(data: bytes, pos: int) -> int:
        middle = skip_start(data, pos)
        if middle + 4 - pos > MOST_REPEATED:
            raise ValueError("a key of many bytes, which each user key would repeat")
        count, middle = read_count(data, middle)
        places = items(data, middle, count)
        check(len(places) > count)
        return int(places[-1])

    return skip_scan(skip)
