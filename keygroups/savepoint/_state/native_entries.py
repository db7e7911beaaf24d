"""The entries of a state in the hashmap backend's own format, which frames nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keygroups._serializers.base import Read
from keygroups._serializers.compounds import ListSerializer, TimerSerializer, TtlSerializer
from keygroups._serializers.scalars import read_count, read_long
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.entry_readers import NativeEntries
from keygroups.savepoint._state.header import StateDescriptor


def native_entries(state: StateDescriptor, subtask: int) -> NativeEntries[StateEntry] | None:
    """Make what reads so many entries of a state in a key group, of a MAP so many maps.

    Returns None where the job's own classes are needed.
    """
    read = _native_reader(state)
    if read is None:
        return None
    is_map = state.kind == "MAP"
    make = StateEntry._make

    def entries(feed: Feed, key_group: int, count: int) -> Iterator[StateEntry]:
        start = (state.name, state.kind, key_group, subtask)
        for _ in range(count):
            fields, size = feed.read_sized(read)
            if not is_map:
                yield make((*start, *fields, size, None))
                continue
            key, namespace, (read_item, items) = fields
            for _ in range(items):
                item, item_size = feed.read_sized(read_item)
                yield make((*start, key, namespace, *item, None, size + item_size, None))
                size = 0  # that of key and namespace, which stand there once

    return entries


def _native_reader(state: StateDescriptor) -> Read | None:
    """Make what reads an entry of the hashmap backend, from its key on; of a MAP, its beginning.

    Returns None where the job's own classes are needed.
    """
    read_key, read_namespace = state.key_serializer.read, state.namespace_serializer.read
    if read_key is None or read_namespace is None:
        return None
    if state.value_serializer is None:
        read_timer = TimerSerializer(state.key_serializer, state.namespace_serializer).read
        assert read_timer is not None

        def read_one_timer(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
            (timestamp, key, namespace), pos = read_timer(data, pos)
            return (key, namespace, None, None, None, timestamp), pos

        return read_one_timer
    read_value = state.value_serializer.read
    if read_value is None:
        return None
    if state.kind == "MAP":
        user_key = state.user_key_serializer
        if user_key is None or user_key.read is None:
            return None
        read_item = _map_item_reader(user_key.read, read_value, state.has_ttl)

        def read_map(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
            namespace, pos = read_namespace(data, pos)
            key, pos = read_key(data, pos)
            count, pos = read_count(data, pos)
            return (key, namespace, (read_item, count)), pos

        return read_map
    has_ttl = state.has_ttl
    if state.kind == "LIST":
        element = TtlSerializer(state.value_serializer) if has_ttl else state.value_serializer
        read_value, has_ttl = ListSerializer(element).read, False
        assert read_value is not None

    def read_entry(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
        namespace, pos = read_namespace(data, pos)
        key, pos = read_key(data, pos)
        last_access = None
        if has_ttl:
            last_access, pos = read_long(data, pos)
        value, pos = read_value(data, pos)
        return (key, namespace, None, value, last_access, None), pos

    return read_entry


def _map_item_reader(read_user_key: Read, read_value: Read, has_ttl: bool) -> Read:
    def read_item(data: bytes, pos: int) -> tuple[tuple[Any, Any, int | None], int]:
        user_key, pos = read_user_key(data, pos)
        is_null = data[pos]
        pos += 1
        value = last_access = None
        if not is_null:
            if has_ttl:
                last_access, pos = read_long(data, pos)
            value, pos = read_value(data, pos)
        return (user_key, value, last_access), pos

    return read_item
