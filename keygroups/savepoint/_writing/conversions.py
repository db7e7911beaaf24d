"""Whole savepoints with another max parallelism, or in the canonical format."""

from __future__ import annotations

import os
from collections.abc import Iterable

from keygroups.progress import ProgressCallback
from keygroups.savepoint._savepoint import Savepoint, savepoint_of
from keygroups.savepoint._writing.savepoint_writer import SavepointEditor
from keygroups.savepoint.reports import EditReport


def change_max_parallelism(
    savepoint: Savepoint | str | os.PathLike[str],
    new_max_parallelism: int,
    output: str | os.PathLike[str],
    parallelism: int | None = None,
    operators: Iterable[str] | None = None,
    *,
    progress: ProgressCallback | bool | None = None,
) -> EditReport:
    """Write a savepoint anew with another max parallelism, which Flink itself cannot change.

    `savepoint` is what `read_savepoint` returns, or its path; `output` the path or URL of a
    folder that is not there yet. `new_max_parallelism`, 1..32768, is that of `operators`, by
    uid, name or id; None is all but those with a max parallelism of 1, which cannot be parallel.
    Operators that a job chains have to have the same: the report names those without state that
    are left with another.
    `parallelism`, 1..new_max_parallelism, is the new one of those without operator state, and
    so how many files the keyed state of each becomes; None leaves it. The job may run with any
    other. `progress` is that of `read_savepoint`, for a path.

    Every entry, timer and window goes to the key group of its key, which is computed for the old
    max parallelism too and compared. Keys whose hash is not known here move only where the new
    max parallelism divides the old. Operator state, coordinators and all else are copied. What
    `read_savepoint` reads is read, the canonical format is written. The job has to set the new
    max parallelism explicitly. Entries are sorted by this process in bounded memory;
    `keygroups.spark.change_max_parallelism` has executors do it.

    Raises SavepointError, and leaves nothing, for what cannot be moved with certainty: keys of
    other classes, a key in a key group that is not its own, in-flight data of unaligned
    checkpoints, changes that do not say what the keys are, damaged files;
    ParallelismError for a parallelism above the new max parallelism; InvalidValueError for
    operators that are not in the savepoint, where all have that max parallelism and parallelism
    already, for an output that is inside it, and what SavepointWriter takes for no path;
    InvalidTypeError. It warns of what killed writers left as that does.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
    >>> from keygroups.types import LONG, STRING
    >>> folder = mkdtemp()
    >>> with SavepointWriter(folder + "/old") as writer:
    ...     counts = [ValueStateDescriptor("count", LONG)]
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
    ...     by_user.write("count", "ann", 7)
    >>> report = change_max_parallelism(folder + "/old", 4096, folder + "/new")
    >>> (by_user,) = read_savepoint(folder + "/new").operators
    >>> [(entry.key, entry.key_group) for entry in by_user.entries()]
    [('ann', 612)]
    """
    editor = _Converter(savepoint_of(savepoint, progress=progress), output)
    editor.set_max_parallelism(new_max_parallelism, parallelism=parallelism, operators=operators)
    editor.convert_to_canonical()
    return editor._written()


def convert_to_canonical(
    savepoint: Savepoint | str | os.PathLike[str],
    output: str | os.PathLike[str],
    parallelism: int | None = None,
    *,
    progress: ProgressCallback | bool | None = None,
) -> EditReport:
    """Write a savepoint or checkpoint of any format anew as a canonical savepoint.

    That has no files of RocksDB or of other folders, and every backend restores it. The
    arguments, and what is raised, are those of `change_max_parallelism`; `parallelism` is at
    most every max parallelism in the savepoint. At its own parallelism a canonical savepoint
    keeps the bytes of its keyed state.
    """
    editor = _Converter(savepoint_of(savepoint, progress=progress), output)
    editor.convert_to_canonical(parallelism=parallelism)
    return editor._written()


class _Converter(SavepointEditor):
    """Writes the savepoint of a function, whose `output` its path is."""

    _path_name = "output"
