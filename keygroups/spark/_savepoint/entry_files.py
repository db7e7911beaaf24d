"""From the bytes of entries to the files of subtasks: the second half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame

from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.savepoint._tasks.write import OperatorFiles, WriteTask
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group
from keygroups.state_keys import key_group_prefix


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
        # Only the executors need NumPy.
        from keygroups.savepoint._columns.entry_frames import EntryFrames

        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        groups = self.tasks[0].max_parallelism
        key_group = first.column(0)[0].as_py()
        task = self.tasks[compute_operator_index_for_key_group(groups, len(self.tasks), key_group)]
        with task.open() as file:
            frames = EntryFrames(file, len(key_group_prefix(0, groups)), self.elements_of)
            for batch in chain([first], filled):
                frames.add(batch)
            frames.finish()
        yield result_batch(task.written(file))
