"""Spark's executors as the machines that do the work of an editor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from keygroups.spark._savepoint.entry_files import write_entries
from keygroups.spark._savepoint.jobs import frame_of
from keygroups.spark._savepoint.results import described, run_tasks

if TYPE_CHECKING:
    from keygroups.savepoint._jobs.file_jobs import FilesJob
    from keygroups.savepoint._jobs.parted_job import PartedJob


class SparkCluster:
    """Runs functions, and writes files, in tasks of a session; its UI says what they are for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, what: str, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call functions, each in a task, and return their results in any order."""
        with described(self._spark, what):
            return run_tasks(self._spark, tasks)

    def write(self, what: str, entries: PartedJob, job: FilesJob) -> None:
        """Write the entries of a job to the files of subtasks."""
        with described(self._spark, what):
            write_entries(frame_of(self._spark, entries), job)
