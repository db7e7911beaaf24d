"""Writers of sorted batches of entries to the files of subtasks, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups._checks import INT_MAX
from keygroups.savepoint._columns.byte_arrays import assembled, joined_runs, octets_of, records
from keygroups.savepoint._columns.entry_batches import (
    KEY,
    KEY_GROUP,
    SCHEMA,
    STATE,
    VALUE,
    entries_of,
    with_types,
)
from keygroups.savepoint._state.entries import LAST_OF_STATE, EncodedEntry
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.savepoint._state.writing.write_task import WriteTask, WrittenFile
from keygroups.state_keys import key_group_prefix_bytes


def write_batches(
    batches: Iterable[pa.RecordBatch],
    file_of: Callable[[int], KeyedStateFile],
    max_parallelism: int,
    parallelism: int,
) -> None:
    """Write sorted entries, as EntryFrames takes them, each to the file of its subtask.

    `file_of` opens the file of a subtask, once all entries of the subtask before are written. No
    entry of a key group in `batches` comes in a later call. Raises what `EntryFrames.add` raises.
    """
    frames, subtask = None, -1
    for batch in batches:
        subtasks = batch.column(KEY_GROUP).to_numpy() * parallelism // max_parallelism
        bounds = [0, *(np.flatnonzero(np.diff(subtasks)) + 1).tolist(), len(batch)]
        for start, end in pairwise(bounds):
            if frames is None or subtasks[start] != subtask:
                if frames is not None:
                    frames.finish()
                subtask = int(subtasks[start])
                size = key_group_prefix_bytes(max_parallelism)
                frames = EntryFrames(file_of(subtask), size, ())
            frames.add(batch.slice(start, end - start))
    if frames is not None:
        frames.finish()


class EntryFrames:
    """Writes entries sorted by key group, state and key to the file of one subtask.

    `prefix_bytes` is the size of the key group before a key, 1 or 2. `elements_of` are the numbers
    of LIST states whose entries are elements: those of a key become one list, in their order. A
    batch is held back until the next one comes, which may continue its last list, or show that its
    last entry is the last of its state and needs the mark of that.
    """

    def __init__(
        self, file: KeyedStateFile, prefix_bytes: int, elements_of: Collection[int]
    ) -> None:
        self._file = file
        self._prefix_bytes = prefix_bytes
        self._elements_of = np.array([*elements_of], np.int32)
        # A batch, others with more rows of its last entry, and the rows that start an entry.
        self._held: list[pa.RecordBatch] = []
        self._starts = np.zeros(0, np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Write entries, at least one.

        Raises InvalidValueError where one comes twice, or a key group is not the subtask's or
        not in order, or a key or a value has more bytes than Java counts.
        """
        rows = with_types(batch, SCHEMA)
        starts = np.flatnonzero(self._is_first(rows))
        if starts.size:
            first = int(starts[0])
            if first:
                self._held.append(rows.slice(0, first))
                rows = rows.slice(first)
            if self._held:
                self._write(rows)
            self._held, self._starts = [], starts - first
        self._held.append(rows)

    def finish(self) -> None:
        """Write the entries that are held back, after all batches; raises what `add` raises."""
        self._write(None)

    def _is_first(self, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return a mask of the rows that start an entry: all but further elements of a list.

        Raises InvalidValueError for an entry that comes twice.
        """
        states, keys = rows.column(STATE).to_numpy(), rows.column(KEY)
        is_same = np.zeros(len(rows), np.bool_)
        if self._held:
            end = self._held[-1].slice(len(self._held[-1]) - 1)
            is_same[0] = all(end.column(n)[0] == rows.column(n)[0] for n in range(VALUE))
        is_same[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        for numbers in (rows.column(KEY_GROUP).to_numpy(), states):
            is_same[1:] &= numbers[1:] == numbers[:-1]
        is_twice = is_same & ~np.isin(states, self._elements_of)
        if is_twice.any():
            row = int(np.argmax(is_twice))
            raise self._file.twice(next(entries_of(rows.slice(row, 1))))
        return ~is_same

    def _write(self, following: pa.RecordBatch | None) -> None:
        """Write what is held, before `following`: the rows from each start to the next are one.

        The rows (k, a), (k, b), (m, c) of a LIST state with the starts 0 and 2 are the entries
        (k, "a,b") and (m, "c").
        """
        columns = self._held[0].columns
        if len(self._held) > 1:
            columns = [*map(pa.concat_arrays, zip(*(batch.columns for batch in self._held)))]
        if len(self._starts) < len(columns[VALUE]):  # some entry has several rows
            value = joined_runs(columns[VALUE], np.append(self._starts, len(columns[VALUE])))
            firsts = pa.array(self._starts)
            columns = [*(column.take(firsts) for column in columns[:VALUE]), value]
        key_groups, states = (column.to_numpy() for column in columns[:KEY])
        is_changed = (key_groups[1:] != key_groups[:-1]) | (states[1:] != states[:-1])
        is_last = np.append(is_changed, True)
        if following is not None:
            next_run = tuple(column[0].as_py() for column in following.columns[:KEY])
            is_last[-1] = next_run != (key_groups[-1], states[-1])
        sizes = [_lengths(column) for column in columns[KEY:]]
        sizes[0] += self._prefix_bytes
        for lengths in sizes:
            if (size := int(lengths.max())) > INT_MAX:
                row = int(np.argmax(lengths))
                key = columns[KEY][row].as_py()
                entry = EncodedEntry(int(key_groups[row]), int(states[row]), key, b"")
                raise self._file.too_long(entry, size)
        framed, places = octets_of(self._framed(key_groups, is_last, *columns[KEY:], *sizes))
        starts = np.concatenate(([0], np.flatnonzero(is_changed) + 1)).astype(np.int64)
        ends = np.append(starts[1:], len(states))
        data, add_framed = framed.data, self._file.add_framed
        runs = key_groups[starts], states[starts], ends - starts, places[starts], places[ends]
        for key_group, state, count, start, end in zip(*(run.tolist() for run in runs)):
            add_framed(key_group, state, count, data[start:end])

    def _framed(
        self,
        key_groups: NDArray[np.int32],
        is_last: NDArray[np.bool_],
        keys: pa.Array,
        values: pa.Array,
        key_sizes: NDArray[np.int64],
        value_sizes: NDArray[np.int64],
    ) -> pa.Array:
        """Return the bytes of entries in the file, the last of a state with its mark.

        An entry is the size of key group and key, these two, the size of the value, and the value.
        Key k and value v in key group 5 are 00000002 05 6b 00000001 76. The mark is the highest
        bit of the key group: the last entry of a state has 85 for the 05.
        """
        size = self._prefix_bytes
        prefixes = key_groups.astype(">i4").view(np.uint8).reshape(-1, 4)[:, 4 - size :].copy()
        prefixes[is_last, 0] |= LAST_OF_STATE
        return assembled(
            [
                key_sizes.astype(">i4"),
                records(prefixes),
                keys,
                value_sizes.astype(">i4"),
                values,
            ]
        )


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    return np.diff(octets_of(array)[1])


@dataclass(frozen=True)
class FileWriter:
    """Writes the file of a subtask from its entries; it may be pickled.

    `tasks` are those of all subtasks, `elements_of` the numbers of EntryFrames.
    """

    tasks: tuple[WriteTask, ...]
    elements_of: frozenset[int]

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenFile | None:
        """Return the WrittenFile, None without entries; raises what `EntryFrames.add` raises."""
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return None
        groups = self.tasks[0].max_parallelism
        key_group: int = first.column(KEY_GROUP)[0].as_py()
        task = self.tasks[key_group * len(self.tasks) // groups]
        with task.open() as file:
            frames = EntryFrames(file, key_group_prefix_bytes(groups), self.elements_of)
            for batch in chain([first], filled):
                frames.add(batch)
            frames.finish()
        return task.written(file)
