"""The entries of keyed state as the bytes of a canonical savepoint, with only the key decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from keygroups._serializers.base import Read
from keygroups._serializers.compounds import TimerSerializer
from keygroups._serializers.scalars import read_count
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._state.entry_readers import Decode, EntryReaders, NativeEntries
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.state_keys import composite_key_joiner

_TIMESTAMP = 8  # bytes of a timer before its key
_LAST_ACCESS = 8  # bytes before a value with a time to live
_NULL = b"\1"  # of a value in a MAP, and nothing after it


class RawEntry(NamedTuple):
    """An entry as bytes; `key` is all after the key group.

    `decoded_key` is the key of the stream, where it has a key type.
    """

    state: str
    key_group: int
    decoded_key: Any
    key: bytes
    value: bytes


def _raw_decoder(state: StateDescriptor, subtask: int) -> Decode[RawEntry]:
    name = state.name
    # A key is only read for its hash, and one of the job's own classes may be unreadable.
    read_key = None if state.key_type is None else state.key_serializer.read
    before_key = _TIMESTAMP if state.value_serializer is None else 0

    def decode(
        key_group: int, keys: bytes, key: int, key_end: int, values: bytes, value: int, end: int
    ) -> RawEntry:
        decoded = None if read_key is None else read_key(keys, key + before_key)[0]
        return RawEntry(name, key_group, decoded, keys[key:key_end], values[value:end])

    return decode


def _raw_native_entries(state: StateDescriptor, subtask: int) -> NativeEntries[RawEntry] | None:
    name, is_map = state.name, state.kind == "MAP"
    read_key = _native_key_reader(state)
    read_value = _native_value_reader(state)
    if read_key is None or read_value is None:
        return None

    def entries(feed: Feed, key_group: int, count: int) -> Iterator[RawEntry]:
        for _ in range(count):
            decoded, key = feed.read(read_key)
            for _ in range(feed.read(read_count) if is_map else 1):
                user_key, value = feed.read(read_value)
                yield RawEntry(name, key_group, decoded, key + user_key, value)

    return entries


def _native_key_reader(state: StateDescriptor) -> Read | None:
    """Make what reads a key and its namespace: the key, and the bytes of both."""
    key, namespace = state.key_serializer, state.namespace_serializer
    if state.value_serializer is None:
        read_timer = TimerSerializer(key, namespace).read
        return None if read_timer is None else _timer_key_reader(read_timer)
    read_key, read_namespace = key.read, namespace.read
    if read_key is None or read_namespace is None:
        return None
    join = composite_key_joiner(key, namespace)

    def read(data: bytes, pos: int) -> tuple[tuple[Any, bytes], int]:
        _, middle = read_namespace(data, pos)
        decoded, end = read_key(data, middle)
        return (decoded, join(data[middle:end], data[pos:middle])), end

    return read


def _timer_key_reader(read_timer: Read) -> Read:
    def read(data: bytes, pos: int) -> tuple[tuple[Any, bytes], int]:
        (_, decoded, _), end = read_timer(data, pos)
        return (decoded, data[pos:end]), end

    return read


def _native_value_reader(state: StateDescriptor) -> Read | None:
    """Make what reads the bytes of a user key, none outside a MAP, and of a value."""
    value = state.value_serializer
    if value is None:
        return lambda data, pos: ((b"", b""), pos)  # of a timer
    read_value = value.read
    if read_value is None:
        return None
    before = _LAST_ACCESS if state.has_ttl else 0

    def read(data: bytes, pos: int) -> tuple[tuple[bytes, bytes], int]:
        _, end = read_value(data, pos + before)
        return (b"", data[pos:end]), end

    def read_list(data: bytes, pos: int) -> tuple[tuple[bytes, bytes], int]:
        count, pos = read_count(data, pos)
        elements = []
        for _ in range(count):
            _, end = read_value(data, pos + before)
            elements.append(data[pos:end])
            pos = end
        return (b"", b",".join(elements)), pos

    if state.user_key_serializer is None:
        return read_list if state.kind == "LIST" else read
    read_user_key = state.user_key_serializer.read
    if read_user_key is None:
        return None

    def read_item(data: bytes, pos: int) -> tuple[tuple[bytes, bytes], int]:
        _, middle = read_user_key(data, pos)
        if data[middle]:
            return (data[pos:middle], _NULL), middle + 1
        _, end = read_value(data, middle + 1 + before)
        return (data[pos:middle], data[middle:end]), end

    return read_item


RAW = EntryReaders(_raw_decoder, _raw_native_entries)
