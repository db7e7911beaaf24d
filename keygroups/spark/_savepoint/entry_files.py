"""Writes encoded entries to the files of subtasks: the second half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from keygroups.savepoint._tasks.write import OperatorFiles
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.entry_pieces import pieces_of_rows, write_pieces
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark._savepoint.rows.sent_entries import entries_of
from keygroups.spark.placement import repartition_by_key_group

if TYPE_CHECKING:
    from keygroups.savepoint._columns.entry_frames import FileWriter


def encoded(
    df: DataFrame,
    encode: Callable[[Iterable[Any]], Iterator[Any]],
    operator: OperatorFiles,
    elements_of: Collection[int],
) -> DataFrame:
    """Return the entries that a WideRows makes of the rows of a DataFrame, for `write_entries`."""
    if elements_of:
        return entries_of(df, encode)
    return pieces_of_rows(df, encode, operator)


def write_entries(
    entries: DataFrame, operator: OperatorFiles, elements_of: Collection[int]
) -> None:
    """Write the entries of an operator in one task for each subtask, and add the files to it.

    `elements_of` are the numbers of LIST states whose entries are elements: those of a key become
    one list, in the order of their bytes, by which Spark sorts them. Without any, entries are in
    pieces.
    """
    if not elements_of:
        write_pieces(entries, operator)
        return
    from keygroups.savepoint._columns.entry_frames import FileWriter  # needs NumPy and PyArrow

    subtasks = operator.parallelism
    writer = FileWriter(tuple(map(operator.task, range(subtasks))), frozenset(elements_of))
    placed = repartition_by_key_group(entries, "key_group", operator.max_parallelism, subtasks)
    in_order = placed.sortWithinPartitions("key_group", "state", "key", "value")
    written = map_in_arrow(in_order, FileRunner(writer), RESULT)
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
