"""The files of keyed state, each written by the task that gets all entries of its subtask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from keygroups.savepoint._columns.entry_frames import FileWriter
from keygroups.savepoint._edits.edit_task import EditTask
from keygroups.savepoint._edits.keyed_state import EditedKeyedState
from keygroups.savepoint._jobs.entry_pieces import PIECES, PieceWriter, pieces_of_task
from keygroups.savepoint._jobs.parted_job import PartedJob
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.writing.write_task import OperatorFiles, WrittenFile
from keygroups.savepoint._tasks.read import TASK_BYTES

_TYPES = (pa.int32(), pa.int32(), pa.binary(), pa.binary())
ENTRIES = pa.schema(zip(EncodedEntry._fields, _TYPES))
"""The schema of entries that are sent: the fields of an EncodedEntry, bytes in Spark's type."""


@dataclass(frozen=True)
class FilesJob:
    """Writes the files of an operator, one in each task, from batches with a column `key_group`.

    The caller moves each row to the task of the subtask that has its key group, and sorts the rows
    of a task by the columns `order`. Then `write`, which may be pickled, gets the batches of one
    task, and `files.add` each file that it returns; it returns None where there are no entries.
    The batches have the schema `schema`: ENTRIES, or PIECES, which are in no order.
    """

    files: OperatorFiles
    schema: pa.Schema
    write: Callable[[Iterable[pa.RecordBatch]], WrittenFile | None]
    order: tuple[str, ...]


def files_job(files: OperatorFiles, elements_of: Collection[int] = ()) -> FilesJob:
    """Return the job that writes entries, in pieces where none is an element of a list.

    `elements_of` are the numbers of LIST states whose entries are elements: those of a key become
    one list, in the order of their bytes, and the caller sorts them.
    """
    writer = FileWriter(tuple(map(files.task, range(files.parallelism))), frozenset(elements_of))
    if elements_of:
        return FilesJob(files, ENTRIES, writer.write, ("key_group", "state", "key", "value"))
    return FilesJob(files, PIECES, PieceWriter(writer).write, ())


def moving_jobs(keyed_state: EditedKeyedState) -> tuple[PartedJob, FilesJob]:
    """Return the two halves of a move of all entries, which keep their bytes: read, and write."""
    return old_pieces_job(keyed_state.tasks), files_job(keyed_state)


def old_pieces_job(tasks: Iterable[EditTask]) -> PartedJob:
    """Return the job that reads the entries of tasks without steps, with new key groups."""
    splits = (replace(task, read=part) for task in tasks for part in task.read.split(TASK_BYTES))
    return PartedJob(tuple(splits), pieces_of_task, PIECES)
