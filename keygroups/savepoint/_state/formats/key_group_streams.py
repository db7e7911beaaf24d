"""Keyed state with an offset for each key group: canonical savepoints, and the hashmap backend's.

A canonical savepoint frames every key and value by its length. The hashmap backend's own format,
of native savepoints and of checkpoints, frames nothing: an entry ends where its value does.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, islice
from operator import sub
from typing import TYPE_CHECKING, Any

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED, UnreadableError
from keygroups._serializers.data_input import ReadingContext
from keygroups._serializers.scalars import read_int
from keygroups.errors import SavepointError
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._files.files import CHUNK, Files, OpenStream, Planned
from keygroups.savepoint._files.store_file import Span
from keygroups.savepoint._metadata.handles import KeyGroupsHandle, RawTimersHandle
from keygroups.savepoint._state.entries import (
    END_OF_KEY_GROUP,
    LAST_OF_STATE,
    Entry,
    EntryReader,
    NativeEntries,
    StateEntry,
)
from keygroups.savepoint._state.formats.format import (
    Format,
    NotFramedError,
    Selection,
    SizeRun,
    unframed,
)
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.savepoint._state.layouts import Layout, layout_of
from keygroups.savepoint._state.scans import KeyScan, framed_skip, key_scan

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import ColumnDecoder, EntryColumns, HeldEntries

_COMPARED = 8  # key groups whose numbers are looked at
_MOST_SOUGHT = 32  # keys of a key group with which each of its entries is compared
_ALL = (b"",)  # the start that all keys have
_IRREGULAR = 1 << 12  # bytes that are read entry by entry where fewer could be passed over
_LEAST_FRAMED = 14  # bytes: two numbers, two lengths, a key with its key group
_EMPTY_STATE = 6  # its number and a count of 0
_EMPTY_SNAPPY = 10 + 8 + 6  # the start of a stream, and those six bytes in a chunk

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
    offsets = handle.offsets
    has_bytes = _nothing(handle).__ne__
    starts = [*filter(has_bytes, offsets)]
    key_groups = compress(handle.key_groups, map(has_bytes, offsets))
    return zip(key_groups, starts, [*starts[1:], handle.stream.size])


def _nothing(handle: KeyGroupsHandle) -> int:
    """Return the offset of a key group without bytes."""
    return -1 if isinstance(handle, RawTimersHandle) else 0


def header_size(handle: KeyGroupsHandle) -> int:
    """Return the most bytes that the header can have: the offset of the first key group."""
    starts = filter(_nothing(handle).__ne__, handle.offsets)
    return min(starts, default=handle.stream.size)


class _Passed:
    """The states of a key group in the hashmap backend's own format, as far as it is read.

    They have the same order in all key groups of a subtask, which is not that of the header.
    """

    def __init__(self, states: Sequence[StateDescriptor], operator: str) -> None:
        self.states = states
        self._operator = operator
        self.numbers: list[int] = []  # the last one is being read

    def refused(self, feed: Feed, error: UnreadableError) -> NotFramedError:
        """Return the error for a value behind which nothing can be found."""
        *passed, number = self.numbers
        names = ", ".join(show(self.states[before].name) for before in dict.fromkeys(passed))
        readable = f"what comes before can be read: {names or 'no state'}"
        message = unframed(self._operator, self.states[number], error, readable)
        return NotFramedError(str(feed.error(message)))


class OffsetFormat(Format):
    """Keyed state in one stream, of which `_metadata` tells where each key group is."""

    has_offsets = True

    def __init__(self, files: Files, handle: KeyGroupsHandle, context: ReadingContext) -> None:
        self._files = files
        self._handle = handle
        self._context = context

    @property
    def bytes(self) -> int:
        """The size of the stream in bytes."""
        return self._handle.stream.size

    def weights(self) -> dict[int, int]:
        """Return the sizes in bytes by key group; an empty one may have some too."""
        return {key_group: end - start for key_group, start, end in key_group_spans(self._handle)}

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the header, and the key groups that are wanted."""
        yield self._handle.stream, self._spans(selection)

    def _spans(self, selection: Selection) -> Iterator[Span]:
        for key_group, start, end in key_group_spans(self._handle):
            if key_group in selection.key_groups:
                yield start, end

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read what tells how large an empty key group is."""
        return self.header_plan()

    def sizes(self, selection: Selection) -> Iterator[SizeRun]:
        """Yield the sizes of all key groups, wanted or not, less that of an empty one."""
        offsets, nothing = self._handle.offsets, _nothing(self._handle)
        starts = offsets
        if nothing in offsets:
            starts = tuple(filter(nothing.__ne__, offsets))
        if not starts:
            return
        empty = 0
        if not self._handle.is_canonical:
            with self._files.open(self._handle.stream) as stream:
                empty = self._empty_size(stream)
        sizes = [*map(sub, (*starts[1:], self._handle.stream.size), starts)]
        if empty:
            sizes = [max(size - empty, 0) for size in sizes]
        if len(starts) < len(offsets):
            of_present = iter(sizes)
            sizes = [0 if offset == nothing else next(of_present) for offset in offsets]
        yield SizeRun(self._handle.key_groups.start_key_group, sizes)

    @abstractmethod
    def _empty_size(self, stream: OpenStream) -> int:
        """Return the size in bytes of a key group without entries; a canonical one has 0."""


class KeyGroupStreams(OffsetFormat):
    """Managed keyed state of a canonical savepoint or of the hashmap backend."""

    has_framed_columns = True

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
        yield self._handle.stream, [*self._compared_spans(()), self._header_span()]

    def headers(self) -> list[KeyedHeader]:
        """Read the header."""
        with self._files.open(self._handle.stream) as stream:
            return [self._header(stream)]

    def _header(self, stream: OpenStream) -> KeyedHeader:
        return read_keyed_header(stream, header_size(self._handle), self._context)

    def _empty_size(self, stream: OpenStream) -> int:
        """Return the bytes of its number and, for each state, of a count."""
        if not self._is_native(stream, ()):
            return 0
        header = self._header(stream)
        of_state = _EMPTY_SNAPPY if header.is_compressed else _EMPTY_STATE
        return 4 + len(header.states) * of_state

    def _is_native(self, stream: OpenStream, wanted: Collection[int]) -> bool:
        """Tell the formats apart, which up to Flink 1.15 the handle does not always do.

        The native one has bytes for each key group, which start with its number. The other one
        starts with that of a state and the length of a key, of which none has as many bytes as
        several of these numbers would mean.
        """
        if not self._may_be_native:
            return False
        spans = self._compared(wanted)
        if not all(_key_group_at(stream, *span[1:]) == span[0] for span in spans):
            return False
        match spans:
            case [(0, start, end)]:
                return not _is_framed(stream, start, end)
        return True

    @property
    def _may_be_native(self) -> bool:
        return not self._handle.is_canonical and 0 not in self._handle.offsets

    def _compared(self, wanted: Collection[int]) -> list[tuple[int, int, int]]:
        """Return the key groups that tell the formats apart.

        That is one if its number would mean a key of more bytes than it has, best a wanted one.
        """
        telling = None
        for span in key_group_spans(self._handle):
            key_group, start, end = span
            if end - start < key_group << 16:
                if not wanted or key_group in wanted:
                    return [span]
                telling = telling or span
        return [telling] if telling else [*islice(key_group_spans(self._handle), _COMPARED)]

    def _compared_spans(self, wanted: Collection[int]) -> Iterator[Span]:
        if self._may_be_native:
            for _, start, end in self._compared(wanted):
                yield start, min(start + _KEY_GROUP.size, end)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        with self._files.open(self._handle.stream) as stream:
            states, is_native, feeds = self._opened(stream, selection)
            wanted = selection.numbers(states)
            # The native format says where an entry ends to nobody but its reader.
            numbers = range(len(states)) if is_native else wanted
            readers = {number: reader_of(layout_of(states[number])) for number in numbers}
            sought_in = _sought(selection)
            for key_group, feed in feeds:
                sought = sought_in(key_group)
                if is_native:
                    passed = _Passed(states, selection.operator)
                    yield from _native_entries(feed, key_group, passed, readers, wanted, sought)
                else:
                    prefix = selection.prefix_bytes
                    yield from _canonical_entries(feed, key_group, prefix, states, readers, sought)

    def _opened(
        self, stream: OpenStream, selection: Selection
    ) -> tuple[Sequence[StateDescriptor], bool, Iterator[tuple[int, Feed]]]:
        """Return the states, whether the format is the native one, and feeds by key group."""
        header = self._header(stream)
        is_native = self._is_native(stream, selection.key_groups)

        def feeds() -> Iterator[tuple[int, Feed]]:
            before = _KEY_GROUP.size if is_native else 0
            for key_group, start, end in key_group_spans(self._handle):
                if key_group not in selection.key_groups:
                    continue
                feed = Feed(stream, start + before, end, header.is_compressed)
                if is_native and _key_group_at(stream, start, end) != key_group:
                    raise feed.error(f"this is not the start of key group {key_group}")
                yield key_group, feed

        return header.states, is_native, feeds()

    def columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as columns, those of a state in order."""
        from keygroups.savepoint._state.entry_columns import ColumnDecoder

        return self._columns(selection, partial(ColumnDecoder, has_values=selection.has_values))

    def framed_columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as a FramedDecoder makes columns of them."""
        from keygroups.savepoint._state.framed_columns import FramedDecoder

        return self._columns(selection, FramedDecoder)

    def _columns(
        self, selection: Selection, decoder_of: Callable[[StateDescriptor, int], ColumnDecoder]
    ) -> Iterator[EntryColumns]:
        from keygroups.savepoint._state.entry_columns import HeldEntries

        with self._files.open(self._handle.stream) as stream:
            states, is_native, feeds = self._opened(stream, selection)
            subtask, prefix = selection.subtask, selection.prefix_bytes
            held = [HeldEntries(decoder_of(state, subtask), prefix, is_native) for state in states]
            wanted = selection.numbers(states)
            try:
                for key_group, feed in feeds:
                    if is_native:
                        passed = _Passed(states, selection.operator)
                        yield from _native_columns(feed, key_group, passed, held, wanted)
                    else:
                        yield from _canonical_columns(
                            feed, key_group, prefix, states, held, wanted
                        )
            except SavepointError:
                for rows in held:  # Entries before the error come first, or an error of theirs.
                    yield from rows.rest()
                raise
            for rows in held:
                yield from rows.rest()


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


def _sought(selection: Selection) -> Callable[[int], tuple[bytes, ...]]:
    """Return a function from a key group to the starts of the keys to be read in it, or _ALL.

    The starts are behind the key group. They are for a few, as each entry is compared with each.
    """
    if selection.keys is None:
        return lambda key_group: _ALL
    size = selection.prefix_bytes
    starts: dict[int, set[bytes]] = {}
    for key in selection.keys:
        starts.setdefault(int.from_bytes(key[:size], "big"), set()).add(key[size:])

    def sought(key_group: int) -> tuple[bytes, ...]:
        of_key_group = starts.get(key_group, ())
        return _ALL if len(of_key_group) > _MOST_SOUGHT else tuple(of_key_group)

    return sought


def _canonical_entries(
    feed: Feed,
    key_group: int,
    prefix_bytes: int,
    states: Sequence[StateDescriptor],
    readers: Mapping[int, EntryReader[Entry]],
    sought: tuple[bytes, ...],
) -> Iterator[Entry]:
    """Yield the entries of a key group, of the states whose numbers have readers.

    Those of a key that does not start as one that is sought may be left out.

    Flink: FullSnapshotRestoreOperation; written by FullSnapshotAsyncWriter.writeKVStateData.
    """
    for number in _canonical_states(feed, states):
        state, read = states[number], readers[number].framed if number in readers else None
        yield from _framed_entries(feed, key_group, prefix_bytes, state, read, sought)


def _canonical_columns(
    feed: Feed,
    key_group: int,
    prefix_bytes: int,
    states: Sequence[StateDescriptor],
    held: Sequence[HeldEntries],
    wanted: Collection[int],
) -> Iterator[EntryColumns]:
    """Yield columns when enough is held, of the entries that `_canonical_entries` yields."""
    prefix = key_group.to_bytes(prefix_bytes, "big")
    for number in _canonical_states(feed, states):
        state, rows, is_wanted = states[number], held[number], number in wanted
        read, is_last = rows.decoder.reader.framed if is_wanted else _read_nothing, False
        while not is_last:
            places, is_last = rows.scan(feed.data, feed.pos, prefix)
            if len(places) == 1:  # the next one is not whole there, or raises
                next(_framed_entries(feed, key_group, prefix_bytes, state, read))
            elif is_wanted:
                yield from rows.add(feed, key_group, places)
            else:
                feed.pos = int(places[-1])


def _read_nothing(key_group: int, key: bytes, value: bytes) -> None:
    """Read over an entry."""


def _canonical_states(feed: Feed, states: Sequence[StateDescriptor]) -> Iterator[int]:
    """Yield the number of each state in a key group, before its entries."""
    while (number := feed.read(_read_u16)) != END_OF_KEY_GROUP:
        if number >= len(states):
            raise feed.error(f"state {number}, of {len(states)}")
        yield number


def _framed_entries(
    feed: Feed,
    key_group: int,
    prefix_bytes: int,
    state: StateDescriptor,
    read: Callable[[int, bytes, bytes], Entry] | None,
    starts: tuple[bytes, ...] = _ALL,
) -> Iterator[Entry]:
    """Yield the entries of a state in a key group; without a reader, read over them.

    So are those whose keys start otherwise.
    """
    skip, start = None, prefix_bytes
    is_any = starts == _ALL
    if not is_any:
        layout = layout_of(state)
        prefix_of_all = key_group.to_bytes(prefix_bytes, "big")
        skip = framed_skip(layout.fields(), prefix_of_all, layout.before_key, starts)
        start += layout.before_key
    is_last, again = False, 0
    while not is_last:
        if skip is not None and feed.offset >= again:
            before = feed.pos
            feed.pos = skip(feed.data, before)
            if feed.pos - before < _IRREGULAR:
                again = feed.offset + _IRREGULAR
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
        # Comparing an entry takes a tenth of its time.
        if read is not None and (is_any or data.startswith(starts, key + start, value - 4)):
            try:
                entry = read(key_group, data[key + prefix_bytes : value - 4], data[value:end])
            except (*TRUNCATED, ValueError) as error:
                raise feed.error(f"no entry of {state}: {error}") from None
            yield entry
        feed.pos = end


def _native_entries(
    feed: Feed,
    key_group: int,
    passed: _Passed,
    readers: Mapping[int, EntryReader[Entry]],
    wanted: Collection[int],
    sought: tuple[bytes, ...],
) -> Iterator[Entry]:
    """Yield the entries of a key group, of the states with some numbers.

    Those of a key that does not start as one that is sought may be left out.

    Flink: HeapRestoreOperation.readKeyGroupStateData; written by HeapSnapshotStrategy.
    """
    try:
        for number, count in _native_states(feed, passed, wanted):
            state = passed.states[number]
            read = _native_reader(state, readers[number])
            scan = None if sought == _ALL else key_scan(layout_of(state).fields().native, sought)
            if scan is None:
                entries = read(feed, key_group, count)
            else:
                entries = _native_sought(feed, key_group, count, read, scan)
            if number in wanted:
                yield from entries
            else:
                for _ in entries:
                    pass
    except UnreadableError as error:
        raise passed.refused(feed, error) from None


def _native_sought(
    feed: Feed, key_group: int, count: int, read: NativeEntries[Entry], scan: KeyScan
) -> Iterator[Entry]:
    """Yield the entries of a state that a scan finds, and some others."""
    while count:
        places, passed, end = scan(feed.data, feed.pos, count)
        for place in places:
            feed.pos = place
            yield from read(feed, key_group, 1)
        feed.pos = end
        count -= passed
        if count:  # the next one is not whole there, or raises
            yield from read(feed, key_group, 1)
            count -= 1


def _native_columns(
    feed: Feed,
    key_group: int,
    passed: _Passed,
    held: Sequence[HeldEntries],
    wanted: Collection[int],
) -> Iterator[EntryColumns]:
    """Yield columns when enough is held, of the entries that `_native_entries` yields."""
    try:
        for number, count in _native_states(feed, passed, wanted):
            rows = held[number]
            read = _native_reader(passed.states[number], rows.decoder.reader)
            scan = rows.decoder.scan_native if number in wanted else None
            if scan is not None:
                yield from _scanned_columns(feed, key_group, count, rows, read, scan)
                continue
            feed.shared = 0
            for entry in read(feed, key_group, count):
                if number in wanted:
                    yield from rows.add_entry(entry, feed)
    except UnreadableError as error:
        raise passed.refused(feed, error) from None


def _scanned_columns(
    feed: Feed,
    key_group: int,
    count: int,
    rows: HeldEntries,
    read: NativeEntries[StateEntry],
    scan: Callable[[bytes, int, int], Any],  # an array of NumPy, which is not imported here
) -> Iterator[EntryColumns]:
    """Yield columns when enough is held, of a state whose entries a scan finds."""
    while count:
        places = scan(feed.data, feed.pos, count)
        if len(places) > 1:
            count -= len(places) - 1
            yield from rows.add(feed, key_group, places)
        elif rows.are_maps:  # the next one is not whole there, or of a long key, or raises
            feed.shared = 0
            for entry in read(feed, key_group, 1):
                yield from rows.add_entry(entry, feed)
            count -= 1
        else:  # the next one is not whole there, or raises
            before = feed.offset
            next(read(feed, key_group, 1))
            feed.pos -= feed.offset - before


def _native_states(
    feed: Feed, passed: _Passed, wanted: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Yield the number of each state that has entries in a key group, and how many."""
    pending, states = set(wanted), passed.states
    while pending:  # States behind the last wanted one may be unreadable.
        number = feed.read(_read_u16)
        if number >= len(states):
            raise feed.error(f"state {number}, of {len(states)}")
        count = feed.read(read_int)
        if count < 0:
            raise feed.error(f"a count of {count}")
        passed.numbers.append(number)
        if count:
            yield number, count
        pending.discard(number)


def _native_reader(state: StateDescriptor, reader: EntryReader[Entry]) -> NativeEntries[Entry]:
    if reader.native is not None:
        return reader.native
    parts = (
        *(state.key_serializer, state.namespace_serializer),
        *(state.user_key_serializer, state.value_serializer),
    )
    unread = [str(part) for part in parts if part is not None and part.read is None]
    raise UnreadableError(f"nothing here reads {', '.join(unread)}")


def _read_u16(data: bytes, pos: int) -> tuple[int, int]:
    return _u16(data, pos)[0], pos + 2
