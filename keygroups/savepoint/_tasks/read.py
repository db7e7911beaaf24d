"""A part of an operator's keyed state that can be read by itself, on another machine too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING

from keygroups._serializers.data_input import ReadingContext
from keygroups.progress import Meter
from keygroups.savepoint._files.files import Files, Planned
from keygroups.savepoint._metadata.handles import (
    KeyedHandle,
    KeyGroupsHandle,
    RawTimersHandle,
)
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.formats.by_handle import format_of
from keygroups.savepoint._state.formats.format import Format, Selection, SizeRun
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor
from keygroups.state_keys import key_group_prefix_bytes

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import EntryColumns

TASK_BYTES = 16 << 20
"""About how many bytes of state a task reads on another machine."""


@dataclass(frozen=True)
class ReadTask:
    """Reads some key groups of what one subtask wrote; it may be pickled.

    `context` is what headers are read with, `handles` are those of its keyed state. `key_groups`
    are the ones that are wanted, in order; `states` the names of the states, all if None. `keys`
    are the ones that are wanted, as bytes with their key groups, all if None: what need not be
    read for them is left out, and entries of other keys may come too. `operator` is the label of
    the operator, for errors.
    """

    files: Files
    context: ReadingContext
    handles: tuple[KeyedHandle, ...]
    subtask: int
    max_parallelism: int
    key_groups: KeyGroupRanges
    states: frozenset[str] | None
    keys: frozenset[bytes] | None = None
    operator: str = ""

    def entries(self) -> Iterator[StateEntry]:
        """Return the entries, one key group after the other."""
        if not self.files.has_plan:
            return (entry for task in ahead([self]) for entry in task.entries())
        of_handles = [
            self._format(handle).entries(self._read_of(handle)) for handle in self.handles
        ]
        if len(of_handles) == 1:
            return of_handles[0]
        return merge(*of_handles, key=lambda entry: entry.key_group)

    def encoded_entries(self, numbers: Mapping[str, int]) -> Iterator[EncodedEntry]:
        """Return the entries as bytes, one key group after the other.

        `numbers` are those of the states that are wanted, by name.
        """
        if not self.files.has_plan:
            return (entry for task in ahead([self]) for entry in task.encoded_entries(numbers))
        of_handles = [
            self._format(handle).encoded_entries(self._read_of(handle), numbers)
            for handle in self.handles
        ]
        if len(of_handles) == 1:
            return of_handles[0]
        return merge(*of_handles, key=lambda entry: entry.key_group)

    def columns(self) -> Iterator[EntryColumns]:
        """Yield the entries column by column, in no order; takes NumPy and PyArrow."""
        for task in [self] if self.files.has_plan else ahead([self]):
            for handle in task.handles:
                yield from task._format(handle).columns(task._read_of(handle))

    def framed_columns(self) -> Iterator[EntryColumns]:
        """Yield the entries as bytes with their keys, column by column, in no order."""
        for task in [self] if self.files.has_plan else ahead([self]):
            for handle in task.handles:
                yield from task._format(handle).framed_columns(task._read_of(handle))

    def plan(self) -> Iterator[Planned]:
        """Plan to read the entries."""
        for handle in self.handles:
            yield from self._format(handle).plan(self._selection(handle))

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers."""
        for keyed in self._formats():
            yield from keyed.header_plan()

    def descriptors(self) -> Iterator[StateDescriptor]:
        """Yield the states that the headers tell of."""
        for keyed in self._formats():
            yield from keyed.states()

    def header(self, handle: KeyedHandle) -> KeyedHeader:
        """Read the header of the state behind a handle."""
        return self._format(handle).header()

    def split(self, size: int) -> Iterator[ReadTask]:
        """Yield tasks that together read the same, each of about so many bytes.

        One has at least one key group. Of RocksDB's files, whose key groups stand together, each
        key group is taken for as heavy as the others.
        """
        weights = self.weights()
        run: list[tuple[int, int]] = []
        room = size
        for key_group in self.key_groups:
            weight = weights[key_group]
            if run and weight > room:
                yield replace(self, key_groups=KeyGroupRanges.of(run))
                run, room = [], size
            run.append((key_group, key_group))
            room -= weight
        if run:
            yield replace(self, key_groups=KeyGroupRanges.of(run))

    @property
    def bytes(self) -> int:
        """About how many bytes there are to read, as `split` counts them."""
        weights = self.weights()
        return sum(weights[key_group] for key_group in self.key_groups)

    @property
    def bytes_to_read(self) -> int:
        """The same, with what is read for any key group: headers, the changes of a changelog."""
        formats = self._formats()
        return self.bytes + sum(
            max(0, keyed.bytes - sum(keyed.weights().values())) for keyed in formats
        )

    def weights(self) -> Counter[int]:
        """Return about how many bytes each key group of the subtask has."""
        weights: Counter[int] = Counter()
        for keyed in self._formats():
            weights.update(keyed.weights())
        return weights

    @property
    def has_offsets(self) -> bool:
        """Whether `_metadata` tells where each key group is."""
        return all(keyed.has_offsets for keyed in self._formats())

    def size_plan(self) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        for handle in self.handles:
            yield from self._format(handle).size_plan(self._selection(handle))

    def key_group_sizes(self) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, which add up where one comes twice."""
        for handle in self.handles:
            yield from self._format(handle).sizes(self._selection(handle))

    def _formats(self) -> list[Format]:
        return [*map(self._format, self.handles)]

    def _format(self, handle: KeyedHandle) -> Format:
        return format_of(self.files, handle, self.context)

    def _selection(self, handle: KeyedHandle) -> Selection:
        key_groups = self.key_groups.intersection(handle.key_groups)
        prefix_bytes = key_group_prefix_bytes(self.max_parallelism)
        return Selection(
            self.subtask, prefix_bytes, key_groups, self.states, self.keys, self.operator
        )

    def _read_of(self, handle: KeyedHandle) -> Selection:
        """Return the selection behind a handle: raw timers only where they are not managed too.

        Flink 1.13 writes timers on the heap twice in a full checkpoint of RocksDB.
        """
        selection = self._selection(handle)
        first = self.handles[0]
        if type(first) is not KeyGroupsHandle or not isinstance(handle, RawTimersHandle):
            return selection
        raw = {state.name for state in self._format(handle).states()}
        managed = {state.name for state in self._format(first).states()}
        return selection._replace(states=frozenset(filter(selection.has, raw - managed)))


def ahead(
    tasks: Sequence[ReadTask],
    plan: Callable[[ReadTask], Iterator[Planned]] = ReadTask.plan,
    meter: Meter | None = None,
) -> Iterator[ReadTask]:
    """Yield tasks of one savepoint, each to be read before the next, and to the end.

    At a URL the bytes that they plan to read are asked for ahead; a meter counts what is read.
    """
    if tasks:
        with tasks[0].files.metered(meter).ahead(chain.from_iterable(map(plan, tasks))) as files:
            for task in tasks:
                yield replace(task, files=files)
