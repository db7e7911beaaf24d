"""Keyed state with an offset for each key group: canonical savepoints, and the hashmap backend's.

A canonical savepoint frames every key and value by its length. The hashmap backend's own format,
of native savepoints and of checkpoints, frames nothing: an entry ends where its value does.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_input import ReadingContext
from keygroups._serializers.scalars import read_int
from keygroups.errors import SavepointError
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._files.files import CHUNK, Files, OpenStream, Planned
from keygroups.savepoint._files.store_file import Span
from keygroups.savepoint._metadata.handles import KeyGroupsHandle, RawTimersHandle
from keygroups.savepoint._state.entries import Entry, EntryReader
from keygroups.savepoint._state.format import Format, Selection
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.savepoint._state.layouts import Layout, layout_of

# Flink: FullSnapshotUtil.FIRST_BIT_IN_BYTE_MASK, END_OF_KEY_GROUP_MARK.
LAST_OF_STATE = 0x80  # set in the first byte of the key that is the last of its state
END_OF_KEY_GROUP = 0xFFFF  # in the place of a state's number

_COMPARED = 8  # key groups whose numbers are looked at
_LEAST_FRAMED = 14  # bytes: two numbers, two lengths, a key with its key group
_EMPTY_STATE = 6  # its number and a count of 0
_EMPTY_SNAPPY = 10 + 14  # the start of a stream, and those six bytes in a chunk

_KEY_GROUP = struct.Struct(">i")  # at the start of each in the native format
_i32 = struct.Struct(">i").unpack_from
_u16 = struct.Struct(">H").unpack_from


def key_group_spans(handle: KeyGroupsHandle) -> Iterator[tuple[int, int, int]]:
    """Yield the key groups that have bytes, with the offsets where they start and end.

    An offset of 0 means that there are none, in raw state one of -1; the hashmap backend, which
    writes the number of each, has none such.

    Flink: FullSnapshotAsyncWriter.writeKVStateData,
    KeyedStateCheckpointOutputStream.NO_OFFSET_SET.
    """
    nothing = -1 if isinstance(handle, RawTimersHandle) else 0
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


class NotFramedError(SavepointError):
    """Values that only the job can read, in a format that does not say where they end."""


class OffsetFormat(Format):
    """Keyed state in one stream, of which `_metadata` tells where each key group is."""

    has_offsets: ClassVar[bool] = True

    def __init__(self, files: Files, handle: KeyGroupsHandle, context: ReadingContext) -> None:
        self._files = files
        self._handle = handle
        self._context = context

    @property
    def bytes(self) -> int:
        """How many bytes the stream has."""
        return self._handle.stream.size

    def weights(self) -> dict[int, int]:
        """Return how many bytes each key group has, which is some where it is empty too."""
        return {key_group: end - start for key_group, start, end in key_group_spans(self._handle)}

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the header, and the key groups that are wanted."""
        yield self._handle.stream, self._spans(selection)

    def _spans(self, selection: Selection) -> Iterator[Span]:
        for key_group, start, end in key_group_spans(self._handle):
            if key_group in selection.key_groups:
                yield start, end

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read what tells how large an empty key group is, if that is not known."""
        if not self._handle.is_canonical:
            yield from self.header_plan()

    def sizes(self, selection: Selection) -> Mapping[int, int]:
        """Return how many bytes each key group has that is not empty, wanted or not."""
        sizes = self.weights()
        if self._handle.is_canonical or not sizes:
            return sizes
        with self._files.open(self._handle.stream) as stream:
            empty = self._empty_size(stream)
        return {key_group: size - empty for key_group, size in sizes.items() if size > empty}

    @abstractmethod
    def _empty_size(self, stream: OpenStream) -> int:
        """Return how many bytes a key group without entries takes; a canonical one takes none."""


class KeyGroupStreams(OffsetFormat):
    """Managed keyed state of a canonical savepoint or of the hashmap backend."""

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the header, of many bytes the first."""
        yield self._handle.stream, [self._header_span()]

    def _header_span(self) -> Span:
        return 0, min(header_size(self._handle), CHUNK)

    def _spans(self, selection: Selection) -> Iterator[Span]:
        yield self._header_span()
        yield from self._compared_spans(selection.key_groups)
        yield from super()._spans(selection)

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read what tells the formats apart, and the header."""
        if not self._handle.is_canonical:
            yield self._handle.stream, [*self._compared_spans(()), self._header_span()]

    def header(self) -> KeyedHeader:
        """Read the header."""
        with self._files.open(self._handle.stream) as stream:
            return self._header(stream)

    def _header(self, stream: OpenStream) -> KeyedHeader:
        return read_keyed_header(stream, header_size(self._handle), self._context)

    def _empty_size(self, stream: OpenStream) -> int:
        """Return the bytes of its number and, for each state, of a count."""
        if not self._is_native(stream, ()):
            return 0
        header = self._header(stream)
        of_state = _EMPTY_STATE + header.is_compressed * _EMPTY_SNAPPY
        return 4 + len(header.states) * of_state

    def _is_native(self, stream: OpenStream, wanted: Container[int]) -> bool:
        """Tell the formats apart, which up to Flink 1.15 the handle does not always do.

        The native one has bytes for each key group, which start with its number. The other one
        starts with that of a state and the length of a key, of which none has as many bytes as
        several of these numbers would mean.
        """
        if self._may_be_native:
            spans = self._compared(wanted)
            if not all(_key_group_at(stream, *span[1:]) == span[0] for span in spans):
                return False
            return len(spans) != 1 or spans[0][0] != 0 or not _is_framed(stream, *spans[0][1:])
        return False

    @property
    def _may_be_native(self) -> bool:
        return not self._handle.is_canonical and 0 not in self._handle.offsets

    def _compared(self, wanted: Container[int]) -> list[tuple[int, int, int]]:
        """Return the key groups that tell the formats apart.

        That is one if its number would mean a key of more bytes than it has, best a wanted one.
        """
        telling = [
            span for span in key_group_spans(self._handle) if span[2] - span[1] < span[0] << 16
        ]
        for span in telling:
            if span[0] in wanted:
                return [span]
        return telling[:1] or [*islice(key_group_spans(self._handle), _COMPARED)]

    def _compared_spans(self, wanted: Container[int]) -> Iterator[Span]:
        if self._may_be_native:
            for _, start, end in self._compared(wanted):
                yield start, min(start + _KEY_GROUP.size, end)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        with self._files.open(self._handle.stream) as stream:
            header = self._header(stream)
            states, key_groups = header.states, selection.key_groups
            readers = [reader_of(layout_of(state)) for state in states]
            wanted = {number for number, state in enumerate(states) if selection.has(state.name)}
            is_native = self._is_native(stream, key_groups)
            before = _KEY_GROUP.size if is_native else 0
            for key_group, start, end in key_group_spans(self._handle):
                if key_group not in key_groups:
                    continue
                feed = Feed(stream, start + before, end, header.is_compressed)
                if is_native:
                    if _key_group_at(stream, start, end) != key_group:
                        raise feed.error(f"this is not the start of key group {key_group}")
                    yield from _native_entries(feed, key_group, states, readers, wanted)
                else:
                    prefix = selection.prefix_bytes
                    yield from _canonical_entries(feed, key_group, prefix, states, readers, wanted)


def _key_group_at(stream: OpenStream, start: int, end: int) -> int | None:
    """Return the number that a key group starts with in the native format."""
    if end - start < _KEY_GROUP.size:
        return None
    return int(_KEY_GROUP.unpack(stream.read(start, start + _KEY_GROUP.size))[0])


def _is_framed(stream: OpenStream, start: int, end: int) -> bool:
    """Tell whether key group 0 is one of framed entries: as it ends, and as the first key fits."""
    if end - start < _LEAST_FRAMED:
        return False
    (mark,) = _u16(stream.read(end - 2, end))
    (key_size,) = _i32(stream.read(start + 2, start + 6), 0)
    return bool(mark == END_OF_KEY_GROUP and 2 <= key_size <= end - start - _LEAST_FRAMED + 2)


def _canonical_entries(
    feed: Feed,
    key_group: int,
    prefix_bytes: int,
    states: Sequence[StateDescriptor],
    readers: Sequence[EntryReader[Entry]],
    wanted: Collection[int],
) -> Iterator[Entry]:
    """Yield the entries of a key group, of the states with some numbers.

    Flink: FullSnapshotRestoreOperation; written by FullSnapshotAsyncWriter.writeKVStateData.
    """
    while (number := feed.read(_read_u16)) != END_OF_KEY_GROUP:
        if number >= len(readers):
            raise feed.error(f"state {number}, of {len(readers)}")
        read = readers[number].framed if number in wanted else None
        is_last = False
        while not is_last:
            data, pos = feed.data, feed.pos
            key = pos + 4
            try:
                (key_size,) = _i32(data, pos)
                value = key + key_size + 4
                (value_size,) = _i32(data, value - 4)
                end = value + value_size
                if end > len(data):
                    raise IndexError
            except TRUNCATED:
                feed.more()
                continue
            if key_size <= prefix_bytes or value_size < 0:
                raise feed.error(f"a key of {key_size} bytes, a value of {value_size}")
            prefix = data[key]
            is_last = prefix >= LAST_OF_STATE
            if is_last:
                prefix -= LAST_OF_STATE
            if prefix_bytes == 2:
                prefix = prefix << 8 | data[key + 1]
            if prefix != key_group:
                raise feed.error(f"a key of key group {prefix} in key group {key_group}")
            if read is not None:
                try:
                    entry = read(key_group, data[key + prefix_bytes : value - 4], data[value:end])
                except (*TRUNCATED, ValueError) as error:
                    raise feed.error(f"no entry of {states[number]}: {error}") from None
                yield entry
            feed.pos = end


def _native_entries(
    feed: Feed,
    key_group: int,
    states: Sequence[StateDescriptor],
    readers: Sequence[EntryReader[Entry]],
    wanted: Collection[int],
) -> Iterator[Entry]:
    """Yield the entries of a key group, of the states with some numbers.

    Flink: HeapRestoreOperation.readKeyGroupStateData; written by HeapSnapshotStrategy.
    """
    left = set(wanted)
    while left:  # what follows the last that is wanted may be unreadable
        number = feed.read(_read_u16)
        if number >= len(states):
            raise feed.error(f"state {number}, of {len(states)}")
        count = feed.read(read_int)
        if count < 0:
            raise feed.error(f"a count of {count}")
        if count:
            read = readers[number].native
            if read is None:
                error = feed.error(
                    f"{states[number]} takes the job's own classes to read, and this format does "
                    "not say where such a value ends: take a savepoint in canonical format"
                )
                raise NotFramedError(str(error))
            entries = read(feed, key_group, count)
            if number in left:
                yield from entries
            else:
                for _ in entries:
                    pass
        left.discard(number)


def _read_u16(data: bytes, pos: int) -> tuple[int, int]:
    return _u16(data, pos)[0], pos + 2
