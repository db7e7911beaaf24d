"""Readers of a savepoint's entries, with their new key groups, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from keygroups.savepoint._edits.edit_task import EditTask
from keygroups.savepoint._tasks.read import TASK_BYTES
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.rows.sent_entries import ENTRIES, sent


def old_entries(spark: SparkSession, edit_tasks: Iterable[EditTask]) -> DataFrame:
    """Return the entries of tasks without steps, with their new key groups, read in many tasks."""
    tasks = tuple(
        replace(task, read=split) for task in edit_tasks for split in task.read.split(TASK_BYTES)
    )
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    return map_in_arrow(numbers, OldEntryReader(tasks), ENTRIES)


@dataclass(frozen=True)
class OldEntryReader:
    """Reads the entries of the tasks whose numbers a partition has; it may be pickled."""

    tasks: tuple[EditTask, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entries; raises SavepointError as `EditTask.batches` does."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from map(sent, self.tasks[number].batches())
