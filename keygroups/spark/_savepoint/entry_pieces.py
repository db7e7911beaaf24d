"""Entries in pieces, hundreds to a row, so that Spark moves few rows and sorts none.

A piece has entries of one subtask: their heads, their keys and their values, each one after the
other. All pieces of a batch of Arrow are made, and taken apart, at once. Who writes the file of
the subtask sorts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from keygroups.savepoint._edits.edit_task import EditTask
from keygroups.savepoint._edits.keyed_state import EditedKeyedState
from keygroups.savepoint._tasks.read import TASK_BYTES
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from keygroups.savepoint._columns.entry_frames import FileWriter

_PIECE = 1 << 13  # bytes; Spark sends 10,000 rows to Python at once
_HEAD = [("key_group", "<i4"), ("state", "<i4"), ("key", "<i4"), ("value", "<i4")]
"""The key group and the number of the state of an entry, and the sizes of its key and value."""
_PIECES = T.StructType(
    [
        T.StructField("key_group", T.IntegerType()),
        *(T.StructField(name, T.BinaryType()) for name in ("heads", "keys", "values")),
    ]
)
"""The schema of pieces; `key_group` is that of the first entry."""


def write_anew(spark: SparkSession, keyed_state: EditedKeyedState) -> None:
    """Write all entries of an operator, which keep their bytes and change their key groups.

    They are read in many tasks, and written in one task for each subtask.
    """
    from keygroups.savepoint._columns.entry_frames import FileWriter  # needs NumPy and PyArrow

    groups, subtasks = keyed_state.max_parallelism, keyed_state.parallelism
    tasks = tuple(
        replace(task, read=split)
        for task in keyed_state.tasks
        for split in task.read.split(TASK_BYTES)
    )
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    pieces = map_in_arrow(numbers, PieceReader(tasks), _PIECES)
    placed = repartition_by_key_group(pieces, "key_group", groups, subtasks)
    writer = FileWriter(tuple(map(keyed_state.task, range(subtasks))), frozenset())
    for file in collect_results(map_in_arrow(placed, PieceRunner(writer), RESULT)):
        keyed_state.add(file)


@dataclass(frozen=True)
class PieceReader:
    """Reads the entries of the tasks whose numbers a partition has; it may be pickled."""

    tasks: tuple[EditTask, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield pieces; raises SavepointError as `EditTask.batches` does."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = self.tasks[number]
                groups = task.write.max_parallelism
                yield from _piece_batches(task.batches(), groups, task.parallelism)


@dataclass(frozen=True)
class PieceRunner:
    """Writes the file of a subtask from its pieces, in any order; it may be pickled."""

    writer: FileWriter

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pickled WrittenFile in a batch, or nothing without entries."""
        from keygroups.savepoint._columns.batch_sorter import BatchSorter

        with closing(BatchSorter(None)) as sorter:
            for batch in batches:
                if batch.num_rows and sorter.add(entries_of_pieces(batch)):
                    sorter.spill()
            written = self.writer.write(sorter.entries())
        if written is not None:
            yield result_batch(written)


def _piece_batches(
    batches: Iterable[RecordBatch], max_parallelism: int, parallelism: int
) -> Iterator[RecordBatch]:
    """Yield batches of pieces, each of about as many entries as a task reads."""
    held: list[RecordBatch] = []
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
    batches: Iterable[RecordBatch], max_parallelism: int, parallelism: int
) -> RecordBatch:
    """Return the entries of some batches in pieces, in Spark's types."""
    import numpy as np
    import pyarrow as pa

    from keygroups.savepoint._columns.byte_arrays import fixed, octets_of, runs

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
    return pa.RecordBatch.from_arrays(arrays, _PIECES.names)


def entries_of_pieces(batch: Any) -> RecordBatch:
    """Return the entries of a batch of pieces, as a BatchSorter takes them."""
    import numpy as np
    import pyarrow as pa

    from keygroups.savepoint._columns.byte_arrays import bounds_of, octets_of, of_octets
    from keygroups.savepoint._columns.entry_batches import SCHEMA

    octets, keys, values = (octets_of(column)[0] for column in batch.columns[1:])
    heads = np.frombuffer(octets, _HEAD)
    numbers = (np.ascontiguousarray(heads[name]) for name in ("key_group", "state"))
    arrays = [
        *map(pa.array, numbers),
        of_octets(keys, bounds_of(heads["key"])),
        of_octets(values, bounds_of(heads["value"])),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
