"""Writes encoded entries to the files of subtasks: the second half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from keygroups.savepoint._state.writing.write_task import OperatorFiles
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group

if TYPE_CHECKING:
    from keygroups.savepoint._columns.entry_frames import FileWriter


def write_entries(
    entries: DataFrame, operator: OperatorFiles, elements_of: Collection[int] = ()
) -> None:
    """Write the entries of an operator in one task for each subtask, and add the files to it.

    `entries` have the schema ENTRIES, in any order. `elements_of` are the numbers of LIST states
    whose entries are elements: those of a key become one list, in the order of their bytes.
    """
    from keygroups.savepoint._columns.entry_frames import FileWriter  # needs NumPy and PyArrow

    subtasks = operator.parallelism
    writer = FileWriter(tuple(map(operator.task, range(subtasks))), frozenset(elements_of))
    placed = repartition_by_key_group(entries, "key_group", operator.max_parallelism, subtasks)
    order = ["key_group", "state", "key", *(["value"] if elements_of else [])]
    written = map_in_arrow(placed.sortWithinPartitions(*order), FileRunner(writer), RESULT)
    for file in collect_results(written):
        operator.add(file)


@dataclass(frozen=True)
class FileRunner:
    """Writes the file of a subtask; `mapInArrow` calls it with the entries of a partition.

    It may be pickled.
    """

    writer: FileWriter

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pickled WrittenFile in a batch, or nothing without entries."""
        written = self.writer.write(batches)
        if written is not None:
            yield result_batch(written)
