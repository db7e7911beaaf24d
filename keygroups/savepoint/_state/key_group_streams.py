"""Keyed state with an offset for each key group: canonical savepoints, and the hashmap backend's.

A canonical savepoint frames every key and value by its length. The hashmap backend's own format,
of native savepoints and of checkpoints, frames nothing: an entry ends where its value does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Generic

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.scalars import read_int
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._files.files import Files, OpenStream
from keygroups.savepoint._metadata.handles import KeyGroupsHandle
from keygroups.savepoint._state.entry_readers import Entry, EntryReaders
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header

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
    readers: EntryReaders[Entry],
) -> Iterator[Entry]:
    """Yield the entries of some states and key groups, one key group after the other."""
    with files.open(handle.stream) as stream:
        header = read_header(handle, stream)
        spans = [span for span in key_group_spans(handle) if span[0] in key_groups]
        read: Callable[[OpenStream, int, int, int], Iterator[Entry]]
        if handle.is_canonical or not _is_native(stream, spans):
            read = _canonical_reader(header, subtask, prefix_bytes, wanted, readers)
        else:
            read = _NativeReader(header, subtask, wanted, readers).key_group
        for key_group, start, end in spans:
            yield from read(stream, key_group, start, end)


def _is_native(stream: OpenStream, spans: Sequence[tuple[int, int, int]]) -> bool:
    """Tell the formats apart: the native one repeats the number of each key group."""
    return all(
        end - start >= 4 and _i32(stream.read(start, start + 4), 0)[0] == key_group
        for key_group, start, end in spans
    )


def _canonical_reader(
    header: KeyedHeader,
    subtask: int,
    prefix_bytes: int,
    wanted: Callable[[str], bool],
    readers: EntryReaders[Entry],
) -> Callable[[OpenStream, int, int, int], Iterator[Entry]]:
    decoders = [
        readers.decoder(state, subtask) if wanted(state.name) else None for state in header.states
    ]

    def key_group_entries(
        stream: OpenStream, key_group: int, start: int, end: int
    ) -> Iterator[Entry]:
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


class _NativeReader(Generic[Entry]):
    def __init__(
        self,
        header: KeyedHeader,
        subtask: int,
        wanted: Callable[[str], bool],
        readers: EntryReaders[Entry],
    ) -> None:
        self._header = header
        self._subtask = subtask
        self._wanted = {number for number, state in enumerate(header.states) if wanted(state.name)}
        self._readers = readers

    def key_group(
        self, stream: OpenStream, key_group: int, start: int, end: int
    ) -> Iterator[Entry]:
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

    def _state(self, feed: Feed, state: StateDescriptor, key_group: int) -> Iterator[Entry]:
        count = feed.read(read_int)
        if count < 0:
            raise feed.error(f"a count of {count}")
        if not count:
            return
        read = self._readers.native(state, self._subtask)
        if read is None:
            raise feed.error(
                f"{state} takes the job's own classes to read, and this format does not say where "
                "such a value ends: take a savepoint in canonical format"
            )
        yield from read(feed, key_group, count)
