"""Writes entries to the files of subtasks: the second half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import RESULT, collect_results, result_batch
from keygroups.spark.placement import repartition_by_key_group

if TYPE_CHECKING:
    from keygroups.savepoint._jobs.file_jobs import FilesJob


def write_entries(entries: DataFrame, job: FilesJob) -> None:
    """Write entries, in any order, in one task for each subtask, and add the files to the job."""
    files = job.files
    groups, subtasks = files.max_parallelism, files.parallelism
    placed = repartition_by_key_group(entries, "key_group", groups, subtasks)
    if job.order:
        placed = placed.sortWithinPartitions(*job.order)
    for file in collect_results(map_in_arrow(placed, FileRunner(job.write), RESULT)):
        files.add(file)


@dataclass(frozen=True)
class FileRunner:
    """Writes the file of a subtask; `mapInArrow` calls it with the rows of a partition.

    It may be pickled.
    """

    write: Callable[[Iterable[Any]], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pickled WrittenFile in a batch, or nothing without entries."""
        written = self.write(batches)
        if written is not None:
            yield result_batch(written)
