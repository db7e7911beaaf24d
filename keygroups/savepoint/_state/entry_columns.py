"""Entries of keyed state as columns of Arrow, decoded by NumPy for thousands of entries at once.

A part of an entry that has a fixed size, or is a String, is decoded for all entries together;
another one as `layouts` does it, entry by entry. What is not as expected is left to the reader of
single entries, so that all of it is checked as that does, with its errors.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._serializers import compounds
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.data_input import MOST_REPEATED
from keygroups._serializers.jvm import avro, kryo, pojos, scala
from keygroups.errors import SavepointError
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    numbers_at,
)
from keygroups.savepoint._columns.readers.readers import list_reader_of
from keygroups.savepoint._files.feed import Feed, HeldFeed
from keygroups.savepoint._state.entries import LAST_OF_STATE, EntryReader, StateEntry, not_an_entry
from keygroups.savepoint._state.framed_chains import chained
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import has_key_bytes, layout_of
from keygroups.savepoint._state.native_columns import decode, decode_values, native_of, reads_of
from keygroups.savepoint._state.scans import framed_size
from keygroups.savepoint._state.skips import Scan

ROWS, BYTES = 1 << 14, 1 << 22
"""How many entries, or bytes of them, are decoded at once, about."""
_FEW_BYTES = BYTES >> 4  # bytes decoded at once if `_may_grow` is true of a serializer
_LONG_NAME = 128  # characters
MOST = 1 << 31  # bytes that Arrow's offsets of 32 bits reach
_OVERHEAD = 256  # bytes that an entry takes in memory besides its own
_COPIES = 4  # copies that each entry makes of shared bytes as it becomes columns
_SCANNED = 1 << 12  # entries of which the places are found at once
_LEAST_RUN = 16  # entries of one size, where others may have another
_LOOKED_AT = 4  # entries that tell soon whether many may be of one size
_LEAST_CHAIN = 64  # entries of many sizes that are worth a search for all of them
_NO_PLACES = np.empty(0, np.int64)
_INT = np.dtype(">i4")

_i32 = struct.Struct(">i").unpack_from
_size_and_byte = struct.Struct(">iB").unpack_from

Pairs = Iterator[tuple[Sequence[bytes], Sequence[bytes]]]
"""Keys of RocksDB, with their key groups, and their values, some at once."""
Error = Callable[[int, Exception], SavepointError]
"""Makes the error for the entry of a number from that of its reader."""


@dataclass(frozen=True)
class EntryColumns:
    """Some entries of one state: `columns` by the names of the fields of StateEntry.

    A field that has no column is the same in all: that of the state, of the subtask, or None.
    """

    state: StateDescriptor
    count: int
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class FramedRows:
    """Entries in bytes: the offsets of their keys, without the key group, and of their values.

    They are in order. Keys and values may lie in the same bytes.
    """

    key_groups: NDArray[np.int32]
    keys: bytes
    key_starts: Ints
    key_ends: Ints
    values: bytes
    value_starts: Ints
    value_ends: Ints
    error: Error


class ColumnDecoder:
    """Decodes the entries of one state that a subtask wrote.

    `framed_size` is how many bytes the key of an entry, without its key group, and its value
    have where all have as many, else None. `most_bytes` is how many are decoded at once, about.
    `scan_native` finds entries in the hashmap backend's own format, None where they are read one
    by one. Without `has_values` framed entries have no values, of whatever bytes these are.
    """

    def __init__(self, state: StateDescriptor, subtask: int, has_values: bool = True) -> None:
        layout = layout_of(state)
        fields = layout.fields()
        self._has_values = has_values
        self.state = state
        self.reader: EntryReader[Any] = layout.decoding(subtask)
        self._key, self._value = reads_of(fields.key), reads_of(fields.value)
        has_bytes = has_key_bytes(state)  # only the reader of single entries gives them
        if has_bytes:
            self._key = None
        self._list = list_reader_of(state) if state.kind == "LIST" else None
        self._before_value = fields.before_value
        self._read_value = fields.read_value
        self.framed_size = framed_size(fields)
        self.most_bytes = _most_bytes(state)
        self._native = None if has_bytes else native_of(state, fields)
        self.scan_native = None if self._native is None else _as_array(self._native.scan)

    def framed(self, rows: FramedRows) -> EntryColumns:
        """Decode entries; raises SavepointError for one that is none of the state."""
        if self._key is None or max(len(rows.keys), len(rows.values)) >= MOST:
            return self._one_by_one(rows)
        try:
            columns, ends = decode(self._key, rows.keys, rows.key_starts)
            if not np.array_equal(ends, rows.key_ends):
                raise ValueError("keys of another size")
            if self._has_values:
                columns |= self._values(rows)
        except (*TRUNCATED, ValueError):
            return self._one_by_one(rows)
        columns["key_group"] = pa.array(rows.key_groups)
        sizes = rows.key_ends - rows.key_starts + (rows.value_ends - rows.value_starts)
        columns["bytes"] = pa.array(sizes)
        return EntryColumns(self.state, len(sizes), columns)

    def _values(self, rows: FramedRows) -> dict[str, Column]:
        data, starts, ends = rows.values, rows.value_starts, rows.value_ends
        if self._list is not None:
            return {"value": self._list(data, starts, ends)}
        if self._value is None:
            assert self._read_value is not None
            spans = zip(starts.tolist(), ends.tolist())
            read_value = self._read_value
            stored = [read_value(data[start:end], 0) for start, end in spans]
            values, times = zip(*stored)
            return {"value": list(values), "last_access": list(times)}
        return decode_values(self._value, self._before_value, data, starts, ends)

    def _one_by_one(self, rows: FramedRows) -> EntryColumns:
        entries = []
        spans = (
            rows.key_groups,
            rows.key_starts,
            rows.key_ends,
            rows.value_starts,
            rows.value_ends,
        )
        read, keys, values = self.reader.framed, rows.keys, rows.values
        for number, (key_group, key, key_end, value, end) in enumerate(
            zip(*(span.tolist() for span in spans))
        ):
            try:
                entries.append(read(key_group, keys[key:key_end], values[value:end]))
            except (*TRUNCATED, ValueError) as error:
                raise rows.error(number, error) from None
        return of_entries(self.state, entries)

    def native(
        self, data: bytes, starts: Ints, ends: Ints, key_groups: NDArray[np.int32]
    ) -> EntryColumns | None:
        """Decode entries that `scan_native` found; None where they are to be read one by one."""
        assert self._native is not None
        try:
            columns, rows = self._native.decode(data, starts, ends)
        except (*TRUNCATED, ValueError):
            return None
        columns["key_group"] = pa.array(key_groups[rows])
        return EntryColumns(self.state, len(rows), columns)

    def joined(self, entries: Sequence[Any]) -> EntryColumns:
        """Return the columns of entries that `reader` has read."""
        return of_entries(self.state, entries)

    def size_of(self, entry: Any) -> int:
        """Return the bytes of an entry that `reader` has read."""
        size: int = entry.bytes
        return size


class HeldEntries:
    """Holds the entries of one state that were found in feeds, until it is worth decoding them."""

    def __init__(self, decoder: ColumnDecoder, prefix_bytes: int, is_native: bool) -> None:
        self.decoder = decoder
        self._prefix_bytes = prefix_bytes
        self._is_native = is_native
        self.are_maps = is_native and decoder.state.kind == "MAP"
        """Whether each of the entries that a scan finds may become many."""
        self._most_bytes = min(self.decoder.most_bytes, _FEW_BYTES if self.are_maps else BYTES)
        self._reach = 0
        self._clear()

    def _clear(self) -> None:
        self._segments: list[bytes] = []
        self._starts: list[Ints] = []
        self._ends: list[Ints] = []
        self._key_groups: list[int] = []
        # Each segment's place for errors, and its offset there less that in the joined segments.
        self._origins: list[tuple[str, int]] = []
        self._entries: list[Any] = []  # entries of `add_entry`
        self._size = self._count = 0

    def scan(self, data: bytes, pos: int, prefix: bytes) -> tuple[Ints, bool]:
        """Find entries as `scan_framed` does; where many were found, it searches twice as far."""
        places, is_last = scan_framed(data, pos, prefix, self.decoder.framed_size, self._reach)
        found = 2 * int(places[-1] - pos) if len(places) > _LEAST_CHAIN else 0
        if is_last:  # a key group may have less than the one before
            self._reach //= 2
        self._reach = min(max(self._reach, found), BYTES)
        return places, is_last

    def add(self, feed: Feed, key_group: int, places: Ints) -> Iterator[EntryColumns]:
        """Take the entries between `places` in the feed's window: starts, and the end of the last.

        Yields what is held where that is enough.
        """
        if self._entries:
            yield from self.rest()
        start, end = int(places[0]), int(places[-1])
        self._segments.append(feed.data[start:end])
        self._origins.append((feed.place, feed.offset - feed.pos + start - self._size))
        places = places + (self._size - start)
        self._starts.append(places[:-1])
        self._ends.append(places[1:])
        self._key_groups.append(key_group)
        self._size += end - start
        self._count += len(places) - 1
        feed.pos = end
        if self._count >= ROWS or self._size >= self._most_bytes:
            yield from self.rest()

    def add_entry(self, entry: Any, feed: Feed) -> Iterator[EntryColumns]:
        """Take an entry that a feed has just had; yield what is held if that is enough."""
        if self._count:
            yield from self.rest()
        self._entries.append(entry)
        shared = feed.shared
        self._size += self.decoder.size_of(entry) + _OVERHEAD + _COPIES * shared
        if shared > MOST_REPEATED:
            feed.repeat(shared, self.decoder.state)
        if self._size >= self._most_bytes:
            yield from self.rest()

    def rest(self) -> Iterator[EntryColumns]:
        """Yield the entries that are held, if there are any."""
        if self._entries:
            yield self.decoder.joined(self._entries)
        elif self._count:
            yield self._decoded()
        self._clear()

    def _decoded(self) -> EntryColumns:
        counts = [len(starts) for starts in self._starts]
        starts, ends = np.concatenate(self._starts), np.concatenate(self._ends)
        key_groups = np.repeat(np.array(self._key_groups, np.int32), counts)
        segments, origins, state = (
            np.repeat(np.arange(len(counts)), counts),
            self._origins,
            self.decoder.state,
        )
        data = b"".join(self._segments)
        if self._is_native:
            columns = self.decoder.native(data, starts, ends, key_groups)
            return columns or self._one_by_one(counts)

        def error(number: int, cause: Exception) -> SavepointError:
            place, offset = origins[segments[number]]
            return SavepointError(
                f"{place}{offset + starts[number]}: no entry of {state}: {cause}"
            )

        keys = starts + 4
        key_ends = keys + numbers_at(data, starts, _INT)
        keys += self._prefix_bytes
        return self.decoder.framed(
            FramedRows(key_groups, data, keys, key_ends, data, key_ends + 4, ends, error)
        )

    def _one_by_one(self, counts: Sequence[int]) -> EntryColumns:
        """Read native entries as single ones, from each segment as many as it has."""
        read = self.decoder.reader.native
        assert read is not None  # or no scan had found them
        entries: list[Any] = []
        begun = 0
        for data, (place, offset), key_group, count in zip(
            self._segments, self._origins, self._key_groups, counts
        ):
            feed = HeldFeed(data, place, offset + begun)
            entries += read(feed, key_group, count)
            begun += len(data)
        return self.decoder.joined(entries)


def of_pairs(
    decoder: ColumnDecoder, name: str, pairs: Pairs, prefix_bytes: int
) -> Iterator[EntryColumns]:
    """Yield the entries that RocksDB's keys and values are; `name` is for errors."""
    of_prefix = np.dtype(f">u{prefix_bytes}")
    for keys, values in _held(pairs, decoder.most_bytes):

        def error(number: int, cause: Exception, keys: list[bytes] = keys) -> SavepointError:
            return not_an_entry(name, keys[number], cause)

        (key_data, key_starts, key_ends), stored = _joined(keys), _joined(values)
        yield decoder.framed(
            FramedRows(
                numbers_at(key_data + b"\0\0", key_starts, of_prefix).astype(np.int32),
                key_data,
                np.minimum(key_starts + prefix_bytes, key_ends),
                key_ends,
                *stored,
                error,
            )
        )


def _joined(parts: Sequence[bytes]) -> tuple[bytes, Ints, Ints]:
    """Return the bytes of all parts, and where each starts and ends there."""
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    ends = np.cumsum(sizes)
    return b"".join(parts), ends - sizes, ends


def _held(pairs: Pairs, most_bytes: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield as many keys and values as are worth decoding."""
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for more_keys, more_values in pairs:
        keys += more_keys
        values += more_values
        size += sum(map(len, more_keys)) + sum(map(len, more_values))
        if len(keys) >= ROWS or size >= most_bytes:
            yield keys, values
            keys, values, size = [], [], 0
    if keys:
        yield keys, values


def of_entries(state: StateDescriptor, entries: Sequence[StateEntry]) -> EntryColumns:
    """Return entries of one state as columns, which are lists."""
    columns = dict(zip(StateEntry._fields, zip(*entries)))
    return EntryColumns(state, len(entries), {name: columns[name] for name in _VARYING})


_VARYING = [name for name in StateEntry._fields if name not in ("state", "kind", "subtask")]


def chunks(
    states: Mapping[str, StateDescriptor], entries: Iterable[StateEntry]
) -> Iterator[EntryColumns]:
    """Yield entries of some states as columns, each so many of one state."""
    held: dict[str, list[StateEntry]] = {}
    most = {name: _most_bytes(state) for name, state in states.items()}
    sizes: Counter[str] = Counter()
    for entry in entries:
        name = entry.state
        held.setdefault(name, []).append(entry)
        sizes[name] += entry.bytes + _OVERHEAD
        if sizes[name] >= most[name]:
            yield of_entries(states[name], held.pop(name))
            del sizes[name]
    for name, rest in held.items():
        yield of_entries(states[name], rest)


def _most_bytes(state: StateDescriptor) -> int:
    """Return the bytes of entries to decode at once: few where they may become many."""
    serializers = (
        state.key_serializer,
        state.namespace_serializer,
        state.user_key_serializer,
        state.value_serializer,
    )
    is_any = any(_may_grow(serializer) for serializer in serializers if serializer is not None)
    return _FEW_BYTES if is_any else BYTES


def _may_grow(serializer: Serializer) -> bool:
    """Return whether values may be much longer as text than the bytes that they are read from."""
    if isinstance(serializer, (compounds.EnumSerializer, scala.ScalaEnumSerializer)):
        return any(len(str(constant)) > _LONG_NAME for constant in serializer.constants)
    if isinstance(serializer, (avro.AvroSerializer, kryo.KryoSerializer)):
        return True
    if isinstance(serializer, pojos.PojoSerializer) and (serializer.registered or serializer.met):
        return True
    return any(map(_may_grow, serializer.parts))


def scan_framed(
    data: bytes, pos: int, prefix: bytes, size: tuple[int, int] | None, reach: int = 0
) -> tuple[Ints, bool]:
    """Find entries that a canonical savepoint frames, one after the other.

    `prefix` is that of their key group, `size` that of `ColumnDecoder`; those of many sizes are
    searched for in `reach` bytes. Returns where each that is whole starts and the last of these
    ends, and whether that one is the last of its state. They stop before one that is damaged.
    """
    places, is_last = _scan_alike(data, pos, prefix, size)
    if len(places) > 1:
        return places, is_last
    if reach:
        places = chained(data, pos, min(len(data), pos + reach), prefix)[: ROWS + 1]
    if not len(places):
        return _scan_each(data, pos, prefix, _SCANNED)
    rest, is_last = _scan_each(data, int(places[-1]), prefix, _LEAST_RUN)
    return np.concatenate([places[:-1], rest]), is_last


def _scan_each(data: bytes, pos: int, prefix: bytes, most: int) -> tuple[Ints, bool]:
    """Find so many entries at most, whatever their sizes."""
    found = [pos]
    byte, last_byte, second = prefix[0], prefix[0] | LAST_OF_STATE, prefix[-1]
    prefix_bytes, length = len(prefix), len(data)
    try:
        for _ in range(most):
            key_size, first = _size_and_byte(data, pos)
            if key_size <= prefix_bytes or (first != byte and first != last_byte):
                break
            if prefix_bytes == 2 and data[pos + 5] != second:
                break
            value = pos + key_size + 8
            (value_size,) = _i32(data, value - 4)
            pos = value + value_size
            if value_size < 0 or pos > length:
                break
            found.append(pos)
            if first == last_byte:
                return np.array(found, np.int64), True
    except TRUNCATED:  # more bytes are needed
        pass
    return np.array(found, np.int64), False


def _as_array(scan: Scan) -> Callable[[bytes, int, int], Ints]:
    """Return a scan that returns the same places as an array."""

    def find(data: bytes, pos: int, count: int) -> Ints:
        places = scan(data, pos, count)
        if isinstance(places, range):
            return np.arange(places.start, places.stop, places.step)
        return np.array(places, np.int64)

    return find


def _scan_alike(
    data: bytes, pos: int, prefix: bytes, size: tuple[int, int] | None
) -> tuple[Ints, bool]:
    """Find entries of the size that all of a state have, or else some more of that of the first.

    Keys are often of one size where their type has none: UUIDs as text, numbers with zeros.
    """
    if size is not None:
        return _scan_sized(data, pos, prefix, *size, ROWS)
    try:
        (key_size,) = _i32(data, pos)
        if key_size > len(prefix):
            (value_size,) = _i32(data, pos + 4 + key_size)
            stride = 8 + key_size + value_size
            if value_size >= 0 and _is_alike(data, pos + stride, key_size, stride):
                first = data, pos, prefix, key_size - len(prefix), value_size
                if len(_scan_sized(*first, _LEAST_RUN)[0]) > _LEAST_RUN:
                    return _scan_sized(*first, ROWS)
    except TRUNCATED:
        pass
    return _NO_PLACES, False


def _is_alike(data: bytes, pos: int, key_size: int, stride: int) -> bool:
    """Return whether some entries have these sizes, which is soon seen where they have not."""
    for _ in range(_LOOKED_AT):
        if _i32(data, pos)[0] != key_size:
            return False
        if _i32(data, pos + 4 + key_size)[0] != stride - 8 - key_size:
            return False
        pos += stride
    return True


def _scan_sized(
    data: bytes, pos: int, prefix: bytes, key_size: int, value_size: int, most: int
) -> tuple[Ints, bool]:
    """Find entries that have all the same size."""
    key_size += len(prefix)
    stride = 8 + key_size + value_size
    count = min((len(data) - pos) // stride, most)
    if not count:
        return _NO_PLACES, False
    strides = (stride,)
    is_good = np.ndarray((count,), ">i4", data, pos, strides) == key_size
    is_good &= np.ndarray((count,), ">i4", data, pos + 4 + key_size, strides) == value_size
    first = np.ndarray((count,), np.uint8, data, pos + 4, strides)
    is_good &= (first & ~np.uint8(LAST_OF_STATE)) == prefix[0]
    if len(prefix) == 2:
        is_good &= np.ndarray((count,), np.uint8, data, pos + 5, strides) == prefix[1]
    stops = np.flatnonzero(~is_good | (first >= LAST_OF_STATE))
    is_last = False
    if len(stops):
        count = int(stops[0])
        is_last = bool(is_good[count])
        count += is_last
    return pos + stride * np.arange(count + 1), is_last
