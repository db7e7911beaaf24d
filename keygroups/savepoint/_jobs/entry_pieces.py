"""Entries in pieces, hundreds to a row, so that few rows are moved and none is sorted.

A piece has entries of one subtask: their heads, their keys and their values, each one after the
other. All pieces of a batch of Arrow are made, and taken apart, at once. Who writes the file of
the subtask sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from keygroups.savepoint._columns.batch_sorter import BatchSorter
from keygroups.savepoint._columns.byte_arrays import bounds_of, fixed, octets_of, of_octets, runs
from keygroups.savepoint._columns.entry_batches import SCHEMA
from keygroups.savepoint._columns.entry_frames import FileWriter
from keygroups.savepoint._edits.edit_task import EditTask
from keygroups.savepoint._state.writing.write_task import WrittenFile
from keygroups.savepoint._tasks.read import TASK_BYTES

_PIECE = 1 << 13  # bytes; Spark sends 10,000 rows to Python at once
_HEAD = [("key_group", "<i4"), ("state", "<i4"), ("key", "<i4"), ("value", "<i4")]
"""The key group and the number of the state of an entry, and the sizes of its key and value."""
PIECES = pa.schema(
    [("key_group", pa.int32()), *((name, pa.binary()) for name in ("heads", "keys", "values"))]
)
"""The schema of pieces; `key_group` is that of the first entry."""


@dataclass(frozen=True)
class PieceWriter:
    """Writes the file of a subtask from its pieces, in any order; it may be pickled."""

    writer: FileWriter

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenFile | None:
        """Return the WrittenFile, None without entries; raises what `FileWriter.write` raises."""
        with closing(BatchSorter(None)) as sorter:
            for batch in batches:
                if batch.num_rows and sorter.add(entries_of_pieces(batch)):
                    sorter.spill()
            return self.writer.write(sorter.entries())


@dataclass(frozen=True)
class RowPieces:
    """Makes pieces of rows, whose entries `encode` makes; it may be pickled."""

    encode: Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]
    max_parallelism: int
    parallelism: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the pieces; raises what `encode` raises."""
        return _piece_batches(self.encode(batches), self.max_parallelism, self.parallelism)


def pieces_of_task(task: EditTask) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a task in pieces; raises SavepointError as `EditTask.batches` does."""
    return _piece_batches(task.batches(), task.write.max_parallelism, task.parallelism)


def _piece_batches(
    batches: Iterable[pa.RecordBatch], max_parallelism: int, parallelism: int
) -> Iterator[pa.RecordBatch]:
    """Yield entries in pieces, in batches of about as many bytes as a task reads."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= TASK_BYTES:
            yield pieces_of(held, max_parallelism, parallelism)
            held, size = [], 0
    if held:
        yield pieces_of(held, max_parallelism, parallelism)


def pieces_of(
    batches: Iterable[pa.RecordBatch], max_parallelism: int, parallelism: int
) -> pa.RecordBatch:
    """Return the entries of some batches in pieces."""
    columns = [*map(pa.concat_arrays, zip(*(batch.columns for batch in batches)))]
    subtasks = columns[0].to_numpy().astype(np.int64) * parallelism // max_parallelism
    if (np.diff(subtasks) < 0).any():
        order = np.argsort(subtasks.astype(np.int16), kind="stable")  # a radix sort
        subtasks = subtasks[order]
        columns = [column.take(pa.array(order)) for column in columns]
    key_groups, states, keys, values = columns
    heads = np.empty(len(keys), _HEAD)
    heads["key_group"], heads["state"] = key_groups.to_numpy(), states.to_numpy()
    key_bounds, value_bounds = octets_of(keys)[1], octets_of(values)[1]
    heads["key"], heads["value"] = np.diff(key_bounds), np.diff(value_bounds)
    # A piece ends where the next entry is of another subtask, or would be of another 8 KiB.
    room = (key_bounds[1:] + value_bounds[1:]) // _PIECE
    is_first = np.ones(len(heads), np.bool_)
    is_first[1:] = (np.diff(room) != 0) | (np.diff(subtasks) != 0)
    bounds = np.append(np.flatnonzero(is_first), len(heads))
    pieces = (runs(column, bounds).cast(pa.binary()) for column in (fixed(heads), keys, values))
    arrays = [pa.array(heads["key_group"][bounds[:-1]]), *pieces]
    return pa.RecordBatch.from_arrays(arrays, schema=PIECES)


def entries_of_pieces(batch: Any) -> pa.RecordBatch:
    """Return the entries of a batch of pieces, as a BatchSorter takes them."""
    octets, keys, values = (octets_of(column)[0] for column in batch.columns[1:])
    heads = np.frombuffer(octets, _HEAD)
    numbers = (np.ascontiguousarray(heads[name]) for name in ("key_group", "state"))
    arrays = [
        *map(pa.array, numbers),
        of_octets(keys, bounds_of(heads["key"])),
        of_octets(values, bounds_of(heads["value"])),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def first_state(heads: bytes) -> int:
    """Return the number of the state of the first entry of a piece, given by its heads."""
    return int(np.frombuffer(heads, _HEAD, 1)["state"][0])
