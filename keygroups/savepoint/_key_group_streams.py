"""Keyed state with an offset for each key group: canonical savepoints, and the hashmap backend's.

A canonical savepoint frames every key and value by its length. The hashmap backend's own format,
of native savepoints and of checkpoints, frames nothing: an entry ends where its value does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from keygroups._compound_serializers import list_of, timer_of, ttl_of
from keygroups._serializers import TRUNCATED, Read, read_count, read_int, read_long
from keygroups.savepoint._entries import StateEntry, entry_decoder
from keygroups.savepoint._feed import Feed
from keygroups.savepoint._files import Files, OpenStream
from keygroups.savepoint._keyed_header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.savepoint._metadata import KeyGroupsHandle

_LAST = 0x80  # set in the first byte of the key that is the last of its state
_END = 0xFFFF  # in the place of a state's number: the end of the key group

_EMPTY_STATE = 6  # its number and a count of 0
_EMPTY_SNAPPY = 10 + 14  # the start of a stream, and those six bytes in a chunk

_i32 = struct.Struct(">i").unpack_from
_u16 = struct.Struct(">H").unpack_from


def key_group_spans(handle: KeyGroupsHandle) -> Iterator[tuple[int, int, int]]:
    """Yield the key groups that have bytes, with the offsets where they start and end.

    In a canonical savepoint an offset of 0 means that there are none, in raw state one of -1.
    """
    nothing = 0 if handle.is_canonical else -1
    end = handle.stream.size
    spans = []
    for key_group, offset in zip(reversed(handle.key_groups), reversed(handle.offsets)):
        if offset != nothing:
            spans.append((key_group, offset, end))
            end = offset
    return reversed(spans)


def header_size(handle: KeyGroupsHandle) -> int:
    """Return how many bytes there are for the header: those before the first key group."""
    return min((start for _, start, _ in key_group_spans(handle)), default=handle.stream.size)


def read_header(handle: KeyGroupsHandle, stream: OpenStream) -> KeyedHeader:
    """Read the header of such a stream."""
    return read_keyed_header(stream, header_size(handle))


def empty_size(header: KeyedHeader) -> int:
    """Return how many bytes a key group without entries takes in the hashmap backend's format."""
    return 4 + len(header.states) * (_EMPTY_STATE + header.is_compressed * _EMPTY_SNAPPY)


def read_entries(
    files: Files,
    handle: KeyGroupsHandle,
    subtask: int,
    prefix_bytes: int,
    wanted: Callable[[str], bool],
    key_groups: Collection[int],
) -> Iterator[StateEntry]:
    """Yield the entries of some states and key groups, one key group after the other."""
    with files.open(handle.stream) as stream:
        header = read_header(handle, stream)
        spans = [span for span in key_group_spans(handle) if span[0] in key_groups]
        read: Callable[[OpenStream, int, int, int], Iterator[StateEntry]]
        if handle.is_canonical or not _is_native(stream, spans):
            read = _canonical_reader(header, subtask, prefix_bytes, wanted)
        else:
            read = _NativeReader(header, subtask, wanted).key_group
        for key_group, start, end in spans:
            yield from read(stream, key_group, start, end)


def _is_native(stream: OpenStream, spans: Sequence[tuple[int, int, int]]) -> bool:
    """Tell the formats apart: the native one repeats the number of each key group."""
    return all(
        end - start >= 4 and _i32(stream.read(start, start + 4), 0)[0] == key_group
        for key_group, start, end in spans
    )


def _canonical_reader(
    header: KeyedHeader, subtask: int, prefix_bytes: int, wanted: Callable[[str], bool]
) -> Callable[[OpenStream, int, int, int], Iterator[StateEntry]]:
    decoders = [
        entry_decoder(state, subtask) if wanted(state.name) else None for state in header.states
    ]

    def key_group_entries(
        stream: OpenStream, key_group: int, start: int, end: int
    ) -> Iterator[StateEntry]:
        feed = Feed(stream, start, end, header.is_compressed)
        while (number := feed.read(_read_u16)) != _END:
            if number >= len(decoders):
                raise feed.error(f"state {number}, of {len(decoders)}")
            decode = decoders[number]
            is_last = False
            while not is_last:
                data, pos = feed.data, feed.pos
                key = pos + 4
                try:
                    (key_size,) = _i32(data, pos)
                    value = key + key_size + 4
                    (value_size,) = _i32(data, value - 4)
                    end_of_value = value + value_size
                    if end_of_value > len(data):
                        raise IndexError
                except TRUNCATED:
                    feed.more()
                    continue
                if key_size <= prefix_bytes or value_size < 0:
                    raise feed.error(f"a key of {key_size} bytes, a value of {value_size}")
                is_last = data[key] >= _LAST
                found = data[key] & ~_LAST
                if prefix_bytes == 2:
                    found = found << 8 | data[key + 1]
                if found != key_group:
                    raise feed.error(f"a key of key group {found} in key group {key_group}")
                if decode is not None:
                    key_end = value - 4
                    try:
                        entry = decode(
                            key_group, data, key + prefix_bytes, key_end, data, value, end_of_value
                        )
                    except (*TRUNCATED, ValueError) as error:
                        raise feed.error(f"no entry of {header.states[number]}: {error}") from None
                    yield entry
                feed.pos = end_of_value

    return key_group_entries


def _read_u16(data: bytes, pos: int) -> tuple[int, int]:
    return _u16(data, pos)[0], pos + 2


class _NativeReader:
    def __init__(self, header: KeyedHeader, subtask: int, wanted: Callable[[str], bool]) -> None:
        self._header = header
        self._subtask = subtask
        self._wanted = {number for number, state in enumerate(header.states) if wanted(state.name)}

    def key_group(
        self, stream: OpenStream, key_group: int, start: int, end: int
    ) -> Iterator[StateEntry]:
        feed = Feed(stream, start + 4, end, self._header.is_compressed)
        states, left = self._header.states, set(self._wanted)
        while left:  # what follows the last that is wanted may be unreadable
            number = feed.read(_read_u16)
            if number >= len(states):
                raise feed.error(f"state {number}, of {len(states)}")
            entries = self._state(feed, states[number], key_group)
            if number in left:
                yield from entries
                left.remove(number)
            else:
                for _ in entries:
                    pass

    def _state(self, feed: Feed, state: StateDescriptor, key_group: int) -> Iterator[StateEntry]:
        count = feed.read(read_int)
        if count < 0:
            raise feed.error(f"a count of {count}")
        if not count:
            return
        read = _native_reader(state)
        if read is None:
            raise feed.error(
                f"{state} takes the job's own classes to read, and this format does not say where "
                "such a value ends: take a savepoint in canonical format"
            )
        is_map = state.kind == "MAP"
        start, make = (state.name, state.kind, key_group, self._subtask), StateEntry._make
        for _ in range(count):
            fields, size = feed.read_sized(read)
            if not is_map:
                yield make((*start, *fields, size))
                continue
            key, namespace, (read_item, items) = fields
            for _ in range(items):
                item, item_size = feed.read_sized(read_item)
                yield make((*start, key, namespace, *item, None, size + item_size))
                size = 0  # that of key and namespace, which stand there once


def _native_reader(state: StateDescriptor) -> Read | None:
    """Make what reads an entry of the hashmap backend, from its key on; of a MAP, its beginning.

    Returns None where the job's own classes are needed.
    """
    read_key, read_namespace = state.key_serializer.read, state.namespace_serializer.read
    if read_key is None or read_namespace is None:
        return None
    if state.value_serializer is None:
        read_timer = timer_of(state.key_serializer, state.namespace_serializer).read
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
        element = ttl_of(state.value_serializer) if has_ttl else state.value_serializer
        read_value, has_ttl = list_of(element).read, False
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
