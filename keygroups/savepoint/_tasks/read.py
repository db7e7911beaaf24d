"""A part of an operator's keyed state that can be read by itself, on another machine too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from keygroups._serializers.data_input import ReadingContext
from keygroups.progress import Meter
from keygroups.savepoint._files.files import Files, Planned
from keygroups.savepoint._metadata.handles import KeyedHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.formats.by_handle import format_of
from keygroups.savepoint._state.formats.format import Format, Selection, SizeRun
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
    the operator, for errors. Without `has_values` the values are left out of `columns` where they
    need not be read to find the next entry, with the times of last access that stand in them.
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
    has_values: bool = True

    def entries(self) -> Iterator[StateEntry]:
        """Return the entries, one key group after the other."""
        if not self.files.has_plan:
            return (entry for task in ahead([self]) for entry in task.entries())
        return self.format.entries(self._selection)

    def encoded_entries(self, numbers: Mapping[str, int]) -> Iterator[EncodedEntry]:
        """Return the entries as bytes, one key group after the other.

        `numbers` are those of the states that are wanted, by name.
        """
        if not self.files.has_plan:
            return (entry for task in ahead([self]) for entry in task.encoded_entries(numbers))
        return self.format.encoded_entries(self._selection, numbers)

    def columns(self) -> Iterator[EntryColumns]:
        """Yield the entries column by column, in no order; takes NumPy and PyArrow."""
        for task in [self] if self.files.has_plan else ahead([self]):
            yield from task.format.columns(task._selection)

    def framed_columns(self) -> Iterator[EntryColumns]:
        """Yield the entries as bytes with their keys, column by column, in no order."""
        for task in [self] if self.files.has_plan else ahead([self]):
            yield from task.format.framed_columns(task._selection)

    def plan(self) -> Iterator[Planned]:
        """Plan to read the entries."""
        return self.format.plan(self._selection)

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers."""
        return self.format.header_plan()

    def split(self, size: int) -> Iterator[ReadTask]:
        """Yield tasks that together read the same, each of about so many bytes.

        One has at least one key group. Of RocksDB's files, whose key groups stand together, each
        key group is taken for as heavy as the others.
        """
        weights = self.format.weights()
        run: list[tuple[int, int]] = []
        room = size
        for key_group in self.key_groups:
            weight = weights.get(key_group, 0)
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
        weights = self.format.weights()
        return sum(weights.get(key_group, 0) for key_group in self.key_groups)

    @property
    def bytes_to_read(self) -> int:
        """The same, with what is read for any key group: headers, the changes of a changelog."""
        other = self.format.bytes - sum(self.format.weights().values())
        return self.bytes + max(0, other)

    def size_plan(self) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        return self.format.size_plan(self._selection)

    def key_group_sizes(self) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, which add up where one comes twice."""
        return self.format.sizes(self._selection)

    @property
    def format(self) -> Format:
        """The format of the state behind all handles, whatever the key groups."""
        return format_of(self.files, self.handles, self.context)

    @property
    def _selection(self) -> Selection:
        prefix_bytes = key_group_prefix_bytes(self.max_parallelism)
        return Selection(
            *(self.subtask, prefix_bytes, self.key_groups, self.states, self.keys, self.operator),
            self.has_values,
        )


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
