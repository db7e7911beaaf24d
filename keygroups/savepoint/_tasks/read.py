"""A part of an operator's keyed state that can be read by itself, on another machine too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge

from keygroups.errors import SavepointError
from keygroups.key_group_range import KeyGroupRange
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    KeyedHandle,
    KeyGroupsHandle,
    RocksDBHandle,
)
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state import key_group_streams as _key_group_streams
from keygroups.savepoint._state import rocksdb as _rocksdb
from keygroups.savepoint._state import timers as _raw_timers
from keygroups.savepoint._state.entries import StateEntry, entry_decoder
from keygroups.savepoint._state.entry_readers import Entry, EntryReaders
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.savepoint._state.native_entries import native_entries
from keygroups.state_keys import key_group_prefix_bytes

_DECODED = EntryReaders(entry_decoder, native_entries)


@dataclass(frozen=True)
class ReadTask:
    """Reads some key groups of what one subtask wrote; it may be pickled.

    `handles` are those of its keyed state, each with whether it is raw. `key_groups` are the ones
    that are wanted, in order; `states` the names of the states, all if None.
    """

    files: Files
    handles: tuple[tuple[KeyedHandle, bool], ...]
    subtask: int
    max_parallelism: int
    key_groups: KeyGroupRanges
    states: frozenset[str] | None

    def entries(self) -> Iterator[StateEntry]:
        """Return the entries, one key group after the other."""
        parts = [self._decoded(handle, is_raw) for handle, is_raw in self.handles]
        return parts[0] if len(parts) == 1 else merge(*parts, key=lambda entry: entry.key_group)

    def descriptors(self) -> Iterator[StateDescriptor]:
        """Yield the states that the headers tell of."""
        for handle, is_raw in self.handles:
            if is_raw and isinstance(handle, KeyGroupsHandle):
                yield from _raw_timers.read_timer_states(self.files, handle)
            else:
                yield from self.header(handle).states

    def header(self, handle: KeyedHandle) -> KeyedHeader:
        """Read the header of managed state."""
        if isinstance(handle, ChangelogHandle):
            raise _changelog_error(self.files.base)
        if isinstance(handle, RocksDBHandle):
            with self.files.open(handle.meta) as stream:
                return read_keyed_header(stream, stream.size)
        with self.files.open(handle.stream) as stream:
            return _key_group_streams.read_header(handle, stream)

    def split(self, size: int) -> Iterator[ReadTask]:
        """Yield tasks that together read the same, each of about so many bytes.

        One has at least one key group. Of RocksDB's files, whose key groups stand together, each
        key group is taken for as heavy as the others.
        """
        sizes: Counter[int] = Counter()
        alike: list[tuple[KeyGroupRange, int]] = []
        for handle, _ in self.handles:
            if isinstance(handle, KeyGroupsHandle):
                for key_group, start, end in _key_group_streams.key_group_spans(handle):
                    sizes[key_group] += end - start
            elif isinstance(handle, RocksDBHandle) and handle.key_groups:
                total = sum(stream.size for _, stream in (*handle.shared, *handle.private))
                alike.append((handle.key_groups, total // len(handle.key_groups)))
        run: list[tuple[int, int]] = []
        left = size
        for key_group in self.key_groups:
            of_key_group = sizes[key_group] + sum(
                each for groups, each in alike if key_group in groups
            )
            if run and of_key_group > left:
                yield replace(self, key_groups=KeyGroupRanges.of(run))
                run, left = [], size
            run.append((key_group, key_group))
            left -= of_key_group
        if run:
            yield replace(self, key_groups=KeyGroupRanges.of(run))

    @property
    def has_offsets(self) -> bool:
        """Whether `_metadata` tells where each key group is."""
        return all(isinstance(handle, KeyGroupsHandle) for handle, _ in self.handles)

    def key_group_sizes(self) -> Counter[int]:
        """Return how many bytes each key group has that is not empty."""
        sizes: Counter[int] = Counter()
        for handle, is_raw in self.handles:
            if isinstance(handle, KeyGroupsHandle):
                sizes.update(self._sizes(handle, is_raw))
            else:
                for entry in self._decoded(handle, is_raw):
                    sizes[entry.key_group] += entry.bytes
        return sizes

    def _sizes(self, handle: KeyGroupsHandle, is_raw: bool) -> dict[int, int]:
        spans = _key_group_streams.key_group_spans(handle)
        sizes = {key_group: end - start for key_group, start, end in spans}
        if handle.is_canonical or not sizes:
            return sizes
        # An empty key group has its number and, for each state, a count in the hashmap backend's
        # own format, and what tells of the timer services in raw state.
        with self.files.open(handle.stream) as stream:
            if is_raw:
                empty = _raw_timers.empty_size(handle, stream)
            else:
                header = _key_group_streams.read_header(handle, stream)
                empty = _key_group_streams.empty_size(header)
        return {key_group: size - empty for key_group, size in sizes.items() if size > empty}

    def _decoded(self, handle: KeyedHandle, is_raw: bool) -> Iterator[StateEntry]:
        if is_raw and isinstance(handle, KeyGroupsHandle):
            key_groups = self.key_groups.intersection(handle.key_groups)
            return _raw_timers.read_entries(
                self.files, handle, self.subtask, self._wanted, key_groups
            )
        return self.read(handle, _DECODED)

    def read(self, handle: KeyedHandle, readers: EntryReaders[Entry]) -> Iterator[Entry]:
        """Return the entries of managed state as readers make them."""
        if isinstance(handle, ChangelogHandle):
            raise _changelog_error(self.files.base)
        key_groups = self.key_groups.intersection(handle.key_groups)
        prefix_bytes = key_group_prefix_bytes(self.max_parallelism)
        where = (self.subtask, prefix_bytes, self._wanted, key_groups, readers)
        if isinstance(handle, RocksDBHandle):
            return _rocksdb.read_entries(self.files, handle, *where)
        return _key_group_streams.read_entries(self.files, handle, *where)

    def _wanted(self, state: str) -> bool:
        return self.states is None or state in self.states


def _changelog_error(folder: str) -> SavepointError:
    return SavepointError(
        f"{folder}: a checkpoint of the changelog backend (state.changelog.enabled, before Flink "
        "2.0 state.backend.changelog.enabled) has changes that are to be replayed, which is not "
        "done here: take a canonical savepoint, which has none"
    )
