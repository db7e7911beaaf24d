"""Entries in pieces, hundreds to a row, so that Spark moves few rows and sorts none of them.

A piece has entries of one subtask: their heads, their keys and their values, each one after the
other. All pieces of a batch of Arrow are made, and taken apart, at once. Who writes the file of
the subtask sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from struct import Struct
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from keygroups.savepoint._edits.edit_task import EditTask
from keygroups.savepoint._tasks.read import TASK_BYTES
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from keygroups.savepoint._columns.entry_frames import FileWriter
    from keygroups.savepoint._edits.keyed_state import EditedKeyedState
    from keygroups.savepoint._tasks.write import OperatorFiles

    _Files = OperatorFiles | EditedKeyedState

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


def pieces_of_rows(
    df: DataFrame, encode: Callable[[Iterable[Any]], Iterator[Any]], files: _Files
) -> DataFrame:
    """Return the entries that a WideRows or LongRows makes of the rows of a DataFrame."""
    return map_in_arrow(df, RowPieces(encode, files.max_parallelism, files.parallelism), _PIECES)


def old_pieces(spark: SparkSession, edit_tasks: Iterable[EditTask]) -> DataFrame:
    """Return the entries of tasks without steps, with their new key groups, read in many tasks."""
    tasks = tuple(
        replace(task, read=split) for task in edit_tasks for split in task.read.split(TASK_BYTES)
    )
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    return map_in_arrow(numbers, PieceReader(tasks), _PIECES)


def write_pieces(pieces: DataFrame, files: _Files) -> None:
    """Write the entries of an operator in one task for each subtask, and add the files to it."""
    from keygroups.savepoint._columns.entry_frames import FileWriter  # needs NumPy and PyArrow

    groups, subtasks = files.max_parallelism, files.parallelism
    placed = repartition_by_key_group(pieces, "key_group", groups, subtasks)
    writer = FileWriter(tuple(map(files.task, range(subtasks))), frozenset())
    for file in collect_results(map_in_arrow(placed, PieceRunner(writer), RESULT)):
        files.add(file)


@dataclass(frozen=True)
class RowPieces:
    """Makes pieces of the rows of a partition; it may be pickled."""

    encode: Callable[[Iterable[Any]], Iterator[Any]]
    max_parallelism: int
    parallelism: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield pieces; raises what `encode` raises."""
        return _piece_batches(self.encode(batches), self.max_parallelism, self.parallelism)


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


def first_state(heads: bytes) -> int:
    """Return the number of the state of the first entry of a piece."""
    state: int = Struct("<i").unpack_from(heads, 4)[0]
    return state
