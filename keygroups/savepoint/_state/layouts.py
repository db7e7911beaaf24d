"""Layouts of entries in canonical files, RocksDB and on the heap: a class for a kind of state.

RocksDB and canonical savepoints have the same bytes of keys and values, each with its length. The
hashmap backend's own format has the namespace before the key, and frames nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import Read, Serializer, UnreadableError, Write, checked_write
from keygroups._serializers.collections import ListSerializer, is_in_order
from keygroups._serializers.data_output import i64
from keygroups._serializers.scalars import (
    SORTED_LONG,
    VOID_NAMESPACE,
    read_count,
    read_long,
)
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups._serializers.streaming import TimerSerializer
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._state.entries import EncodedEntry, EntryReader, NativeEntries, StateEntry
from keygroups.savepoint._state.header import StateDescriptor, framed_state
from keygroups.savepoint._state.stored_values import (
    ReadWhole,
    StoredMapValue,
    all_reads,
    check_not_none,
    elements_of_chunks,
    read_one,
    stored_value,
)
from keygroups.state_keys import composite_key_joiner, composite_key_reader, timer_key_reader

EncodeEntry = Callable[[bytes, Any, Any, Any, "int | None", "int | None"], tuple[bytes, bytes]]
"""From the key's bytes, namespace, user key, value, last access and timestamp to the bytes of an
entry's key, all after the key group, and of its value."""

VOID = b"\0"  # the namespace of state without windows; Flink: VoidNamespaceSerializer


class EntryFields(NamedTuple):
    """The parts of an entry in their order, each with its name in StateEntry.

    `key` is what RocksDB and a canonical savepoint frame as the key, `value` as the value behind
    `before_value`; one behind other bytes is null. `native` is all of an entry in the hashmap
    backend's own format. Each is None where there is something else between. Then `read_value`
    reads a value.
    """

    key: Sequence[tuple[str, Serializer]] | None
    value: Sequence[tuple[str, Serializer]] | None
    native: Sequence[tuple[str, Serializer]] | None
    before_value: bytes = b""
    read_value: ReadWhole | None = None


class Layout(ABC):
    """The entries of one state, read and written."""

    before_key = 0  # bytes of an entry's key that precede that of the stream

    def __init__(self, state: StateDescriptor) -> None:
        self.state = state

    def decoding(self, subtask: int) -> EntryReader[StateEntry]:
        """Return a reader of the entries that a subtask wrote."""
        if has_key_bytes(self.state):
            return _with_key_bytes(self, subtask)
        return self._decoding(subtask)

    @abstractmethod
    def _decoding(self, subtask: int) -> EntryReader[StateEntry]:
        """Return a reader of the entries, of which those with known keys have no `key_bytes`."""

    @abstractmethod
    def fields(self) -> EntryFields:
        """Return of what entries are made."""

    def framing(self, number: int) -> EntryReader[EncodedEntry]:
        """Return a reader of entries as bytes, which have this number of the state."""
        make = tuple.__new__  # EncodedEntry's own one calls it

        def frame(key_group: int, key: bytes, value: bytes) -> EncodedEntry:
            return make(EncodedEntry, (key_group, number, key, value))

        return EntryReader(frame, partial(self._native_framing, number))

    def _native_framing(self, number: int) -> NativeEntries[EncodedEntry] | None:
        """Return a reader of the hashmap backend's entries as those of canonical savepoints."""
        read_key, read_value = self._key_framer(), self._value_framer()
        if read_key is None or read_value is None:
            return None

        make = tuple.__new__

        def read_entry(data: bytes, pos: int) -> tuple[tuple[bytes, bytes], int]:
            key, pos = read_key(data, pos)
            value, pos = read_value(data, pos)
            return (key, value), pos

        def entries(feed: Feed, key_group: int, count: int) -> Iterator[EncodedEntry]:
            for _ in range(count):
                (key, value), _ = feed.read_sized(read_entry)
                yield make(EncodedEntry, (key_group, number, key, value))

        return entries

    @abstractmethod
    def _key_framer(self) -> Read | None:
        """Return a reader of the bytes of an entry's key as RocksDB has them."""

    @abstractmethod
    def _value_framer(self) -> Read | None:
        """Return a reader of the bytes of a value as RocksDB has them."""

    @abstractmethod
    def encoder(self, allow_any_last_access: bool) -> EncodeEntry:
        """Return a writer of entries; the argument is that of `SavepointWriter.add_operator`."""


class ValueLayout(Layout):
    """VALUE, REDUCING and AGGREGATING: a value, of the latter the accumulator.

    Flink: CompositeKeySerializationUtils, RocksDBValueState; CopyOnWriteStateTableSnapshot on the
    heap.
    """

    def __init__(self, state: StateDescriptor) -> None:
        super().__init__(state)
        self.stored = stored_value(state)

    def _decoding(self, subtask: int) -> EntryReader[StateEntry]:
        """Return a reader of the entries, of which those with known keys have no `key_bytes`."""
        state = self.state
        name, kind, make = state.name, state.kind, StateEntry._make  # a third quicker than a call
        read_key = composite_key_reader(
            state.key_serializer, state.namespace_serializer, state.user_key_serializer
        )
        read_value = self.stored.reader()

        def decode(key_group: int, encoded_key: bytes, encoded_value: bytes) -> StateEntry:
            size = len(encoded_key)
            key, namespace, user_key, key_bytes, end = read_key(encoded_key, 0, size)
            if end != size:
                raise ValueError(f"a key of {end} bytes in {size}")
            value, last_access = read_value(encoded_value, 0)
            return make(
                (
                    name,
                    kind,
                    key_group,
                    subtask,
                    key,
                    namespace,
                    user_key,
                    value,
                    last_access,
                    None,
                    size + len(encoded_value),
                    key_bytes,
                )
            )

        return EntryReader(decode, partial(self._native_decoding, subtask))

    def fields(self) -> EntryFields:
        """Return of what entries are made."""
        state = self.state
        key, namespace = ("key", state.key_serializer), ("namespace", state.namespace_serializer)
        value = self.stored.parts()
        has_lengths = state.key_serializer.size is None and state.namespace_serializer.size is None
        return EntryFields(
            None if has_lengths else [key, namespace],
            value,
            None if value is None else [namespace, key, *value],
            self.stored.before_value,
            self.stored.reader(),
        )

    def _native_decoding(self, subtask: int) -> NativeEntries[StateEntry] | None:
        """Return a reader of the hashmap backend's entries."""
        value, has_time = self._native_value()
        reads = all_reads(self.state.key_serializer, self.state.namespace_serializer, value)
        if reads is None:
            return None
        read_key, read_namespace, read_value = reads

        def read_entry(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
            namespace, pos = read_namespace(data, pos)
            key, pos = read_key(data, pos)
            last_access = None
            if has_time:
                last_access, pos = read_long(data, pos)
            value, pos = read_value(data, pos)
            return (key, namespace, None, value, last_access, None), pos

        return _native_entries(self.state, subtask, read_entry)

    def _native_value(self) -> tuple[Serializer, bool]:
        """Return the serializer of a value on the heap, and whether its last access precedes."""
        return self.stored.value_serializer, bool(self.stored.time_bytes)

    def _key_framer(self) -> Read | None:
        key, namespace = self.state.key_serializer, self.state.namespace_serializer
        reads = all_reads(key, namespace)
        if reads is None:
            return None
        read_key, read_namespace = reads
        join = composite_key_joiner(key, namespace)

        def read(data: bytes, pos: int) -> tuple[bytes, int]:
            _, middle = read_namespace(data, pos)
            _, end = read_key(data, middle)
            return join(data[middle:end], data[pos:middle]), end

        return read

    def _value_framer(self) -> Read | None:
        return self.stored.framer()

    def encoder(self, allow_any_last_access: bool) -> EncodeEntry:
        """Return a writer of entries; the argument is that of `SavepointWriter.add_operator`."""
        name, write_value = self.stored.name, self.stored.writer(allow_any_last_access)
        write_start = self._start_writer()

        def encode(
            key: bytes,
            namespace: Any,
            user_key: Any,
            value: Any,
            last_access: int | None,
            timestamp: int | None,
        ) -> tuple[bytes, bytes]:
            if user_key is not None or timestamp is not None:
                _check_none("user_key", user_key, name)
                _check_none("timestamp", timestamp, name)
            return write_start(key, namespace), write_value(value, last_access)

        return encode

    def _start_writer(self) -> Callable[[bytes, Any], bytes]:
        """Return a writer of key and namespace, with which an entry's key starts."""
        name, namespace_serializer = self.stored.name, self.state.namespace_serializer
        if namespace_serializer is VOID_NAMESPACE:

            def write_void(key: bytes, namespace: Any) -> bytes:
                if namespace is not None:
                    _check_none("namespace", namespace, name)
                return key + VOID

            return write_void
        join = composite_key_joiner(self.state.key_serializer, namespace_serializer)
        write_namespace = _part_writer(f"namespace of {name}", namespace_serializer)
        return lambda key, namespace: join(key, write_namespace(namespace))


class ListLayout(ValueLayout):
    """LIST: an entry for each list."""

    def fields(self) -> EntryFields:
        """Return of what entries are made; elements in RocksDB have something between them."""
        state = self.state
        key, namespace = ("key", state.key_serializer), ("namespace", state.namespace_serializer)
        value, _ = self._native_value()
        return super().fields()._replace(native=[namespace, key, ("value", value)])

    def _native_value(self) -> tuple[Serializer, bool]:
        return ListSerializer(self.stored.serializer), False  # Each element has its own.


class MapLayout(ValueLayout):
    """MAP: an entry for each user key, which is the end of the entry's key, and a mark of null.

    On the heap the map stands in one piece, after the number of its user keys.

    Flink: RocksDBMapState; MapSerializer on the heap.
    """

    stored: StoredMapValue

    def __init__(self, state: StateDescriptor) -> None:
        super().__init__(state)
        assert state.user_key_serializer is not None
        self.user_key = state.user_key_serializer

    def fields(self) -> EntryFields:
        """Return of what entries are made."""
        fields = super().fields()
        key = None if fields.key is None else [*fields.key, ("user_key", self.user_key)]
        return fields._replace(key=key, native=None)

    def _native_decoding(self, subtask: int) -> NativeEntries[StateEntry] | None:
        reads = all_reads(self.state.key_serializer, self.state.namespace_serializer)
        read_item = self.stored.item_reader(self.user_key)
        if reads is None or read_item is None:
            return None
        read_key, read_namespace = reads

        def read_start(data: bytes, pos: int) -> tuple[tuple[Any, Any, int], int]:
            namespace, pos = read_namespace(data, pos)
            key, pos = read_key(data, pos)
            count, pos = read_count(data, pos)
            return (key, namespace, count), pos

        name, kind, make = self.state.name, self.state.kind, StateEntry._make

        def entries(feed: Feed, key_group: int, count: int) -> Iterator[StateEntry]:
            for _ in range(count):
                (key, namespace, items), size = feed.read_sized(read_start)
                start = (name, kind, key_group, subtask, key, namespace)
                feed.shared = size
                for _ in range(items):
                    item, item_size = feed.read_sized(read_item)
                    yield make((*start, *item, None, size + item_size, None))
                    size = 0  # the first item alone counts key and namespace

        return entries

    def _native_framing(self, number: int) -> NativeEntries[EncodedEntry] | None:
        read_key = self._key_framer()
        read_item = self.stored.item_framer(self.user_key)
        if read_key is None or read_item is None:
            return None
        state = self.state

        def entries(feed: Feed, key_group: int, count: int) -> Iterator[EncodedEntry]:
            for _ in range(count):
                key = feed.read(read_key)
                for run in feed.runs(feed.read(read_count), len(key), state):
                    for _ in range(run):
                        user_key, value = feed.read(read_item)
                        yield EncodedEntry(key_group, number, key + user_key, value)

        return entries

    def encoder(self, allow_any_last_access: bool) -> EncodeEntry:
        """Return a writer of entries; the argument is that of `SavepointWriter.add_operator`."""
        name, user_key_name = self.stored.name, f"user key of {self.stored.name}"
        write_start = self._start_writer()
        write_user_key = _user_key_writer(user_key_name, self.state, self.user_key)
        write_value = self.stored.writer(allow_any_last_access)

        def encode(
            key: bytes,
            namespace: Any,
            user_key: Any,
            value: Any,
            last_access: int | None,
            timestamp: int | None,
        ) -> tuple[bytes, bytes]:
            _check_none("timestamp", timestamp, name)
            check_not_none(user_key_name, user_key)
            written = write_value(value, last_access)
            return write_start(key, namespace) + write_user_key(user_key), written

        return encode


class ElementLayout(ValueLayout):
    """A value of PyFlink's process mode; on the heap a list of one array of bytes."""

    def fields(self) -> EntryFields:
        """Return of what entries are made; on the heap a count is between."""
        return super().fields()._replace(native=None)

    def _native_value(self) -> tuple[Serializer, bool]:
        return _OnlyElement(self.stored.serializer), False

    def _native_decoding(self, subtask: int) -> NativeEntries[StateEntry] | None:
        native = super()._native_decoding(subtask)
        return _changed(native, _with_time) if self.stored.time_bytes else native


class ChunksLayout(ListLayout):
    """LIST of PyFlink's process mode: an entry for each list, of arrays of some elements each."""

    def _native_decoding(self, subtask: int) -> NativeEntries[StateEntry] | None:
        return _changed(super()._native_decoding(subtask), _with_elements)


class ItemLayout(MapLayout):
    """MAP of PyFlink's process mode, of which user keys and values are arrays of bytes."""

    def __init__(self, state: StateDescriptor) -> None:
        super().__init__(framed_state(state))


class _OnlyElement(Serializer):
    """The element of a list that has one."""

    name = "ELEMENT"

    def __init__(self, element: Serializer) -> None:
        read_element = element.read
        assert read_element is not None  # all of PyFlink's types are read here
        self.read = lambda data, pos: read_element(data, read_one(data, pos))
        super().__init__(element)


def _with_time(entry: StateEntry) -> StateEntry:
    last_access, value = entry.value
    return entry._replace(value=value, last_access=last_access)


def _with_elements(entry: StateEntry) -> StateEntry:
    return entry._replace(value=elements_of_chunks(entry.value))


def _changed(
    native: NativeEntries[StateEntry] | None, change: Callable[[StateEntry], StateEntry]
) -> NativeEntries[StateEntry] | None:
    """Return a reader of entries that gives them changed; None for none."""
    if native is None:
        return None
    return lambda feed, key_group, count: map(change, native(feed, key_group, count))


class TimerLayout(Layout):
    """Timers: an entry's key is the time, with its sign bit flipped, key and namespace; no value.

    On the heap they are the same bytes, without a length.

    Flink: TimerSerializer; RocksDBCachingPriorityQueueSet, whose key has them as they are.
    """

    before_key = 8  # The time, in bytes.

    def _decoding(self, subtask: int) -> EntryReader[StateEntry]:
        """Return a reader of the timers, of which those with known keys have no `key_bytes`."""
        name, kind = self.state.name, self.state.kind
        key, namespace = self.state.key_serializer, self.state.namespace_serializer
        read_key = timer_key_reader(key, namespace)

        def decode(key_group: int, encoded_key: bytes, encoded_value: bytes) -> StateEntry:
            size = len(encoded_key)
            timestamp, start = SORTED_LONG.read(encoded_key, 0)
            key, namespace, _, key_bytes, end = read_key(encoded_key, start, size)
            if end != size or encoded_value:
                raise ValueError(f"a timer of {end} bytes in {size + len(encoded_value)}")
            return StateEntry(
                name,
                kind,
                key_group,
                subtask,
                key,
                namespace,
                None,
                None,
                None,
                timestamp,
                size,
                key_bytes,
            )

        return EntryReader(decode, partial(self._native_decoding, subtask))

    def _native_decoding(self, subtask: int) -> NativeEntries[StateEntry] | None:
        read_timer = self._timer.read
        if read_timer is None:
            return None

        def read_entry(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
            (timestamp, key, namespace), pos = read_timer(data, pos)
            return (key, namespace, None, None, None, timestamp), pos

        return _native_entries(self.state, subtask, read_entry)

    @property
    def _timer(self) -> TimerSerializer:
        return TimerSerializer(self.state.key_serializer, self.state.namespace_serializer)

    def fields(self) -> EntryFields:
        """Return of what timers are made."""
        key = [
            ("timestamp", SORTED_LONG),
            ("key", self.state.key_serializer),
            ("namespace", self.state.namespace_serializer),
        ]
        return EntryFields(key, [], key)

    def _key_framer(self) -> Read | None:
        read_timer = self._timer.read
        if read_timer is None:
            return None

        def read(data: bytes, pos: int) -> tuple[bytes, int]:
            _, end = read_timer(data, pos)
            return data[pos:end], end

        return read

    def _value_framer(self) -> Read | None:
        return lambda data, pos: (b"", pos)

    def encoder(self, allow_any_last_access: bool) -> EncodeEntry:
        """Return a writer of timers, whatever the argument: they have no last access."""
        name = f"timers {self.state.name!r}"
        write_namespace = _part_writer(f"namespace of {name}", self.state.namespace_serializer)

        def encode(
            key: bytes,
            namespace: Any,
            user_key: Any,
            value: Any,
            last_access: int | None,
            timestamp: int | None,
        ) -> tuple[bytes, bytes]:
            _check_none("user_key", user_key, name)
            _check_none("value", value, name)
            _check_none("last_access", last_access, name)
            time = check_int(f"timestamp of {name}", timestamp, LONG_MIN, LONG_MAX)
            return i64(time ^ LONG_MIN) + key + write_namespace(namespace), b""

        return encode


LAYOUTS: dict[str, type[Layout]] = {
    "VALUE": ValueLayout,
    "REDUCING": ValueLayout,
    "AGGREGATING": ValueLayout,
    "LIST": ListLayout,
    "MAP": MapLayout,
    "PRIORITY_QUEUE": TimerLayout,
}


_OF_PYTHON: dict[str, type[Layout]] = {"LIST": ChunksLayout, "MAP": ItemLayout}


def layout_class(state: StateDescriptor) -> type[Layout]:
    """Return the class of the layout of a state's entries."""
    if state.is_python:
        return _OF_PYTHON.get(state.kind, ElementLayout)
    return LAYOUTS[state.kind]


def layout_of(state: StateDescriptor) -> Layout:
    """Return the layout of a state's entries."""
    return layout_class(state)(state)


class _KeyWithBytes(Serializer):
    """A key of the hashmap backend's own format, and its bytes."""

    name = "KEY"

    def __init__(self, key: Serializer) -> None:
        self.size, read_key = key.size, key.read
        assert read_key is not None  # `has_key_bytes` has checked it

        def read(data: bytes, pos: int) -> tuple[tuple[Any, bytes], int]:
            value, end = read_key(data, pos)
            return (value, data[pos:end]), end

        self.read = read
        super().__init__(key)


def has_key_bytes(state: StateDescriptor) -> bool:
    """Return whether a key is there with its bytes, as nobody here writes it."""
    key = state.key_serializer
    return key.read is not None and (key.write is None or not key.writes_keys)


def _with_key_bytes(layout: Layout, subtask: int) -> EntryReader[StateEntry]:
    """Return a reader of entries of which each key that is read has its bytes too."""
    state = layout.state
    framed, start = layout._decoding(subtask).framed, layout.before_key
    read_key = state.key_serializer.read
    assert read_key is not None

    def decode(key_group: int, encoded_key: bytes, encoded_value: bytes) -> StateEntry:
        entry = framed(key_group, encoded_key, encoded_value)
        try:
            _, end = read_key(encoded_key, start)
        except UnreadableError:
            return entry  # whose key is its bytes already
        if entry.key_bytes is not None:
            return entry  # its parts cannot all be told apart
        return entry._replace(key_bytes=encoded_key[start:end])

    def native() -> NativeEntries[StateEntry] | None:
        kept = replace(state, key_serializer=_KeyWithBytes(state.key_serializer))
        return _changed(type(layout)(kept)._decoding(subtask).native, _with_bytes)

    return EntryReader(decode, native)


def _with_bytes(entry: StateEntry) -> StateEntry:
    key, key_bytes = entry.key
    return entry._replace(key=key, key_bytes=key_bytes)


def _native_entries(state: StateDescriptor, subtask: int, read: Read) -> NativeEntries[StateEntry]:
    """Return a reader of entries of which each has its key; `read` reads all but their start."""
    name, kind, make = state.name, state.kind, StateEntry._make

    def entries(feed: Feed, key_group: int, count: int) -> Iterator[StateEntry]:
        start = (name, kind, key_group, subtask)
        for _ in range(count):
            fields, size = feed.read_sized(read)
            yield make((*start, *fields, size, None))

    return entries


# States of Flink SQL whose user keys the planner's code projects out of rows: sort keys, and
# unique keys. In a join of rows without a unique key they are the rows.
_PROJECTED = ("data-state", "data-state-with-append", "data-state-with-update", "window_rank")
_OF_JOINS = ("left-records", "right-records")


def _user_key_writer(name: str, state: StateDescriptor, serializer: Serializer) -> Write:
    """Return a writer of user keys: a row that is projected has a NULL in another form."""
    value = state.value_serializer
    is_of_rows = value is not None and "SQL_ROW" in [part.name for part in (value, *value.parts)]
    if isinstance(serializer, RowDataSerializer) and (
        state.name in _PROJECTED or (state.name in _OF_JOINS and is_of_rows)
    ):
        write = serializer.projected()

        def write_projected(user_key: Any) -> bytes:
            try:
                return write(user_key)
            except KeyGroupsError as error:
                raise type(error)(f"{name}: {error}") from None

        return write_projected
    return _part_writer(name, serializer)


def _part_writer(name: str, serializer: Serializer) -> Write:
    """Return a writer of a namespace or a user key, by the bytes of which RocksDB finds it."""
    if not serializer.writes_keys:
        return partial(checked_write, name, serializer, is_key=True)  # `checked_write` refuses it
    if is_in_order(serializer):
        return partial(checked_write, name, serializer)

    def refuse(value: Any) -> bytes:
        raise UnsupportedKeyTypeError(
            f"{name} cannot be written: RocksDB finds a {serializer} by its bytes, and those of a "
            "map or a set are in an order that only Java has"
        )

    return refuse


def _check_none(argument: str, value: Any, name: str) -> None:
    if value is not None:
        raise InvalidValueError(f"{argument} must be None in the {name}, got {show(value)}")
