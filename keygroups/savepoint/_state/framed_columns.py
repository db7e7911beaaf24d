"""Entries as the bytes that a canonical savepoint frames, thousands at a time, with their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._serializers import scalars
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.compounds import TupleSerializer
from keygroups.savepoint._columns.byte_arrays import assembled, bounds_of, spans
from keygroups.savepoint._columns.readers.parts import Column, Ints, ReadColumn, check
from keygroups.savepoint._columns.readers.readers import reader_of
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.entry_columns import (
    BYTES,
    MOST,
    ROWS,
    ColumnDecoder,
    EntryColumns,
    FramedRows,
)
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import has_hash
from keygroups.savepoint._state.layouts import MapLayout, ValueLayout, layout_of
from keygroups.savepoint._state.native_columns import map_items

_BYTES = pa.large_binary()
_SCALARS = {  # whose values Arrow gives back as they were decoded
    scalars.BooleanSerializer,
    scalars.ByteSerializer,
    scalars.ShortSerializer,
    scalars.IntSerializer,
    scalars.LongSerializer,
    scalars.FloatSerializer,
    scalars.DoubleSerializer,
    scalars.StringSerializer,
}


class FramedDecoder(ColumnDecoder):
    """Makes columns of the bytes of entries, and of their keys.

    The keys are a column of Arrow where they are decoded for all entries together and have a hash;
    else there is none, and who needs a key decodes it from its bytes.
    """

    def __init__(self, state: StateDescriptor, subtask: int) -> None:
        super().__init__(state, subtask)
        layout, key = layout_of(state), state.key_serializer
        self.reader = layout.framing(0)
        self.most_bytes = BYTES
        self._start = layout.before_key
        self._read_key = _key_reader(key) if has_hash(key) else None
        self._namespace_size = state.namespace_serializer.size
        is_framed = type(layout) in (MapLayout, ValueLayout)
        if not is_framed or self._read_key is None or self._namespace_size is None:
            self.scan_native = None
        is_map = self.scan_native is not None and type(layout) is MapLayout
        self._find_items = map_items(state) if is_map else None

    def framed(self, rows: FramedRows) -> EntryColumns:
        """Return the columns of framed entries."""
        keys = self._keys(rows.keys, rows.key_starts, rows.key_ends)
        encoded_key = spans(rows.keys, rows.key_starts, rows.key_ends)
        encoded_value = spans(rows.values, rows.value_starts, rows.value_ends)
        return self._columns(keys, rows.key_groups, encoded_key, encoded_value)

    def native(
        self, data: bytes, starts: Ints, ends: Ints, key_groups: NDArray[np.int32]
    ) -> EntryColumns | None:
        """Return the columns of native entries; None where they are to be read one by one.

        The namespace comes first there, and behind the key in canonical savepoints. Values are
        the same bytes, of which the scan has found the ends, and nothing else is asked.
        """
        assert self._read_key is not None  # or no scan had found them
        assert self._namespace_size is not None
        middles = starts + self._namespace_size
        try:
            keys, key_ends = self._read_key(data, middles)
            check(isinstance(keys, pa.Array))
            parts = [spans(data, middles, key_ends), spans(data, starts, middles)]
            if self._find_items is None:
                check((key_ends <= ends).all())
                value = spans(data, key_ends, ends)
            else:
                items, rows = self._find_items(data, key_ends, ends)
                check(not np.frombuffer(data, np.uint8)[items.middles].any())
                of_rows = pa.array(rows)
                keys, key_groups = keys.take(of_rows), key_groups[rows]
                parts = [part.take(of_rows) for part in parts]
                parts.append(spans(data, items.starts, items.middles))
                value = spans(data, items.middles, items.ends)
        except (*TRUNCATED, ValueError):
            return None
        return self._columns(keys, key_groups, assembled(parts), value)

    def size_of(self, entry: EncodedEntry) -> int:
        """Return the bytes of an entry's key and value."""
        return len(entry.key) + len(entry.value)

    def joined(self, entries: Sequence[EncodedEntry]) -> EntryColumns:
        """Return the columns of single entries."""
        # There are none where all maps are empty.
        key_groups, _, encoded_keys, encoded_values = [*zip(*entries)] or [()] * 4
        bounds = bounds_of(np.array([*map(len, encoded_keys)], np.int64))
        keys = self._keys(b"".join(encoded_keys), bounds[:-1], bounds[1:])
        encoded = (pa.array(parts, _BYTES) for parts in (encoded_keys, encoded_values))
        return self._columns(keys, np.array(key_groups, np.int32), *encoded)

    def _columns(
        self, keys: pa.Array | None, key_groups: NDArray[np.int32], key: pa.Array, value: pa.Array
    ) -> EntryColumns:
        columns: dict[str, Column] = {} if keys is None else {"key": keys}
        columns |= {"key_group": key_groups, "encoded_key": key, "encoded_value": value}
        return EntryColumns(self.state, len(key_groups), columns)

    def _keys(self, data: bytes, starts: Ints, ends: Ints) -> pa.Array | None:
        if self._read_key is None or len(data) >= MOST:
            return None
        try:
            column, key_ends = self._read_key(data, starts + self._start)
        except (*TRUNCATED, ValueError):
            return None
        return column if isinstance(column, pa.Array) and (key_ends <= ends).all() else None


def framed_chunks(
    states: Sequence[StateDescriptor], subtask: int, entries: Iterator[EncodedEntry]
) -> Iterator[EntryColumns]:
    """Yield single entries, whose states stand at their numbers, as a FramedDecoder does."""
    decoders = [FramedDecoder(state, subtask) for state in states]
    held: list[list[EncodedEntry]] = [[] for _ in states]
    count = size = 0
    for entry in entries:
        _, number, key, value = entry
        held[number].append(entry)
        count += 1
        size += len(key) + len(value)
        if count == ROWS or size >= BYTES:
            yield from _joined(decoders, held)
            count = size = 0
    yield from _joined(decoders, held)


def _joined(
    decoders: Sequence[FramedDecoder], held: Sequence[list[EncodedEntry]]
) -> Iterator[EntryColumns]:
    """Yield the columns of what is held of each state, which is held no more."""
    for decoder, entries in zip(decoders, held):
        if entries:
            yield decoder.joined(entries)
            entries.clear()


def with_part(columns: EntryColumns, name: str, part: Any) -> EntryColumns:
    """Return entries with another column of a name."""
    return replace(columns, columns={**columns.columns, name: part})


def chosen(columns: EntryColumns, rows: Ints) -> EntryColumns:
    """Return the entries of a FramedDecoder at some places."""
    places = pa.array(rows)
    parts: dict[str, Any] = {
        name: part[rows] if isinstance(part, np.ndarray) else part.take(places)
        for name, part in columns.columns.items()
    }
    return EntryColumns(columns.state, len(rows), parts)


def single_entries(number: int, columns: EntryColumns) -> Iterator[EncodedEntry]:
    """Yield the entries of a FramedDecoder one by one, of the state with a number."""
    parts: Any = (columns.columns[name] for name in ("key_group", "encoded_key", "encoded_value"))
    for key_group, key, value in zip(*(part.tolist() for part in parts)):
        yield EncodedEntry(key_group, number, key, value)


def _key_reader(serializer: Serializer) -> ReadColumn | None:
    """Return the reader of keys that are scalars, or tuples of some; None for others."""
    if type(serializer) is not TupleSerializer:
        return reader_of(serializer, is_key=True) if type(serializer) in _SCALARS else None
    reads = [_key_reader(part) for part in serializer.parts]
    if None in reads:
        return None

    def read_tuples(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        columns = []
        for read in reads:
            assert read is not None
            column, pos = read(data, pos)
            if not isinstance(column, pa.Array):  # texts that Arrow does not hold
                raise ValueError("keys that are only read one by one")
            columns.append(column)
        return pa.StructArray.from_arrays(columns, [f"f{n}" for n in range(len(columns))]), pos

    return read_tuples
