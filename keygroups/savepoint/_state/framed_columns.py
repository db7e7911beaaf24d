"""Entries as the bytes that a canonical savepoint frames, thousands at a time, with their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from keygroups._serializers import scalars
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.compounds import TupleSerializer
from keygroups.savepoint._columns.readers.parts import Column, Ints, ReadColumn
from keygroups.savepoint._columns.readers.readers import reader_of
from keygroups.savepoint._state.entries import FramedEntry
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
from keygroups.savepoint._state.layouts import layout_of

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
    """Makes columns of the fields of FramedEntry, the name of the state aside.

    The key is a column of Arrow where it is decoded for all entries together, else a list; there
    is none where its hash is not known.
    """

    def __init__(self, state: StateDescriptor, subtask: int) -> None:
        super().__init__(state, subtask)
        layout, key = layout_of(state), state.key_serializer
        self.reader = layout.framing(has_keys=True)
        self.most_bytes = BYTES
        self._start = layout.before_key
        self._has_keys = has_hash(key)
        self._read_key = _key_reader(key) if self._has_keys else None

    def framed(self, rows: FramedRows) -> EntryColumns:
        """Return columns; raises SavepointError for an entry whose key is none of the state."""
        columns: dict[str, Column] = {}
        if self._has_keys:
            columns["key"] = self._keys(rows)
        columns["key_group"] = rows.key_groups
        columns["encoded_key"] = _spans(rows.data, rows.key_starts, rows.key_ends)
        columns["encoded_value"] = _spans(rows.data, rows.value_starts, rows.value_ends)
        return EntryColumns(self.state, len(rows.key_groups), columns)

    def _keys(self, rows: FramedRows) -> Column:
        if self._read_key is not None and len(rows.data) < MOST:
            try:
                column, ends = self._read_key(rows.data, rows.key_starts + self._start)
                if (ends <= rows.key_ends).all():
                    return column
            except (*TRUNCATED, ValueError):
                pass
        keys, read, data = [], self.reader.framed, rows.data
        spans = zip(rows.key_starts.tolist(), rows.key_ends.tolist())
        for number, (start, end) in enumerate(spans):
            try:
                keys.append(read(0, data[start:end], b"").key)
            except (*TRUNCATED, ValueError) as error:
                raise rows.error(number, error) from None
        return keys


def framed_chunks(
    states: Iterable[StateDescriptor], entries: Iterator[FramedEntry]
) -> Iterator[EntryColumns]:
    """Yield single entries as columns of a FramedDecoder, some of each state."""
    by_name = {state.name: state for state in states}
    while chunk := [*islice(entries, ROWS)]:
        by_state: dict[str, list[FramedEntry]] = {}
        for entry in chunk:
            by_state.setdefault(entry.state, []).append(entry)
        for name, of_state in by_state.items():
            columns = dict(zip(FramedEntry._fields, zip(*of_state)))
            del columns["state"]
            if not has_hash(by_name[name].key_serializer):
                del columns["key"]
            yield EntryColumns(by_name[name], len(of_state), _as_arrays(columns))


def _as_arrays(columns: dict[str, Any]) -> dict[str, Column]:
    arrays = {name: pa.array(columns[name], _BYTES) for name in ("encoded_key", "encoded_value")}
    return {**columns, **arrays, "key_group": np.array(columns["key_group"], np.int32)}


def python_keys(column: Column) -> Sequence[Any]:
    """Return the keys of a column as they are when each is decoded by itself."""
    if not isinstance(column, pa.Array):
        keys: Sequence[Any] = column
    elif isinstance(column, pa.StructArray):
        keys = [*zip(*map(python_keys, column.flatten()))]
    else:
        keys = column.to_pylist()
    return keys


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


def _spans(data: bytes, starts: Ints, ends: Ints) -> pa.Array:
    """Return the bytes from each start to its end, which all are in order.

    An array of them and of what is between them needs no copy, and take makes one of the spans.
    """
    offsets = np.empty(2 * len(starts), np.int64)
    offsets[::2], offsets[1::2] = starts, ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    between = pa.Array.from_buffers(_BYTES, len(offsets) - 1, buffers)
    return between.take(pa.array(np.arange(0, len(offsets), 2)))
