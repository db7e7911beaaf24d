"""The format of keyed state by the class of its handle, and of several handles together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING, Any

from keygroups._serializers.data_input import ReadingContext
from keygroups.savepoint._files.files import Files, Planned
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    KeyedHandle,
    KeyGroupsHandle,
    RawTimersHandle,
    RocksDBHandle,
)
from keygroups.savepoint._state.entries import Entry, EntryReader
from keygroups.savepoint._state.formats.changelog import Changelog
from keygroups.savepoint._state.formats.format import Format, Selection, SizeRun
from keygroups.savepoint._state.formats.key_group_streams import KeyGroupStreams
from keygroups.savepoint._state.formats.rocksdb import RocksDBFiles
from keygroups.savepoint._state.formats.timers import RawTimers
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor
from keygroups.savepoint._state.layouts import Layout

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import EntryColumns


class JoinedFormats(Format):
    """The keyed state behind several handles, each with the key groups of its own."""

    def __init__(
        self, files: Files, handles: Sequence[KeyedHandle], context: ReadingContext
    ) -> None:
        self._formats = [FORMATS[type(handle)](files, handle, context) for handle in handles]
        self._key_groups = [handle.key_groups for handle in handles]
        self.has_offsets = all(keyed.has_offsets for keyed in self._formats)
        self.has_framed_columns = all(keyed.has_framed_columns for keyed in self._formats)

    @property
    def bytes(self) -> int:
        """The size of all of the state in bytes."""
        return sum(keyed.bytes for keyed in self._formats)

    def headers(self) -> list[KeyedHeader]:
        """Read the header of each."""
        return [header for keyed in self._formats for header in keyed.headers()]

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers."""
        return chain.from_iterable(keyed.header_plan() for keyed in self._formats)

    def states(self) -> list[StateDescriptor]:
        """Read which states each has: one may come again."""
        return [state for keyed in self._formats for state in keyed.states()]

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the entries that are wanted."""
        return chain.from_iterable(keyed.plan(own) for keyed, own in self._selected(selection))

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        entries = [keyed._entries(own, reader_of) for keyed, own in self._read(selection)]
        return merge(*entries, key=lambda entry: entry.key_group)

    def columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as columns, those of a state and handle in order."""
        return chain.from_iterable(keyed.columns(own) for keyed, own in self._read(selection))

    def framed_columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as a FramedDecoder makes columns of them."""
        read = self._read(selection)
        return chain.from_iterable(keyed.framed_columns(own) for keyed, own in read)

    def weights(self) -> Counter[int]:
        """Return about how many bytes each key group has in all."""
        return sum((Counter(keyed.weights()) for keyed in self._formats), Counter())

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        selected = self._selected(selection)
        return chain.from_iterable(keyed.size_plan(own) for keyed, own in selected)

    def sizes(self, selection: Selection) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, which add up where one comes twice."""
        return chain.from_iterable(keyed.sizes(own) for keyed, own in self._selected(selection))

    def _selected(self, selection: Selection) -> Iterator[tuple[Format, Selection]]:
        """Yield each format with the selection of its own key groups."""
        for keyed, own in zip(self._formats, self._key_groups):
            yield keyed, selection._replace(key_groups=selection.key_groups.intersection(own))

    def _read(self, selection: Selection) -> Iterator[tuple[Format, Selection]]:
        """Yield the same to read entries: raw timers only where they are not managed too.

        Flink 1.13 writes timers on the heap twice in a full checkpoint of RocksDB.
        """
        first = self._formats[0] if self._formats else None
        for keyed, wanted in self._selected(selection):
            if isinstance(keyed, RawTimers) and isinstance(first, KeyGroupStreams):
                managed = {state.name for state in first.states()}
                raw = {state.name for state in keyed.states()} - managed
                wanted = wanted._replace(states=frozenset(filter(selection.has, raw)))
            yield keyed, wanted


def _changelog(files: Files, handle: ChangelogHandle, context: ReadingContext) -> Changelog:
    materialized = JoinedFormats(files, handle.materialized, context)
    return Changelog(files, handle, materialized, context)


FORMATS: dict[type[KeyedHandle], Callable[[Files, Any, ReadingContext], Format]] = {
    KeyGroupsHandle: KeyGroupStreams,
    RawTimersHandle: RawTimers,
    RocksDBHandle: RocksDBFiles,
    ChangelogHandle: _changelog,
}


def format_of(files: Files, handles: Sequence[KeyedHandle], context: ReadingContext) -> Format:
    """Return the format of the keyed state behind handles, whose snapshots a context reads.

    What is asked of a single one has to be of its key groups.
    """
    if len(handles) == 1:
        return FORMATS[type(handles[0])](files, handles[0], context)
    return JoinedFormats(files, handles, context)
