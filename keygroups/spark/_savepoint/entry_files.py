"""From the bytes of entries to the files of subtasks: the second half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from typing import Any

from pyspark.sql import DataFrame

from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.savepoint._state.entry_encoder import EncodedEntry
from keygroups.savepoint._tasks.write import OperatorFiles, WriteTask
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group

ENTRIES = "key_group int, state int, key binary, value binary"
"""The schema of entries, whose fields are those of an EncodedEntry."""


def entry_batch(entries: Sequence[EncodedEntry]) -> Any:
    """Return a batch of Arrow with some entries, at least one."""
    import pyarrow as pa

    types = (pa.int32(), pa.int32(), pa.binary(), pa.binary())
    columns = [pa.array(column, arrow_type) for column, arrow_type in zip(zip(*entries), types)]
    return pa.RecordBatch.from_arrays(columns, EncodedEntry._fields)


def write_entries(
    entries: DataFrame, operator: OperatorFiles, elements_of: Collection[int] = ()
) -> None:
    """Write the entries of an operator, in a task for each subtask, and add the files to it.

    `entries` are of the schema ENTRIES, in any order; `elements_of` are numbers of LIST states of
    which each entry is one element: those of a key become a list in the order of their bytes.
    """
    subtasks = operator.parallelism
    writer = FileWriter(tuple(map(operator.task, range(subtasks))), frozenset(elements_of))
    placed = repartition_by_key_group(entries, "key_group", operator.max_parallelism, subtasks)
    order = ["key_group", "state", "key", *(["value"] if elements_of else [])]
    written = map_in_arrow(placed.sortWithinPartitions(*order), writer, RESULT)
    for file in collect_results(written):
        operator.add(file)


@dataclass(frozen=True)
class FileWriter:
    """Writes the file of a subtask; `mapInArrow` calls it with the entries of a partition.

    It may be pickled. `tasks` are those of all subtasks.
    """

    tasks: tuple[WriteTask, ...]
    elements_of: frozenset[int]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield what was written, pickled; nothing if there are no entries."""
        entries = chain.from_iterable(map(_entries, batches))
        first = next(entries, None)
        if first is None:
            return
        subtasks = len(self.tasks)
        task = self.tasks[
            compute_operator_index_for_key_group(
                self.tasks[0].max_parallelism, subtasks, first.key_group
            )
        ]
        yield result_batch(task.write(chain([first], entries), self.elements_of))


def _entries(batch: Any) -> Iterator[EncodedEntry]:
    return starmap(EncodedEntry, zip(*(column.to_pylist() for column in batch.columns)))
