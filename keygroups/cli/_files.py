"""The command that says which files a savepoint needs, and which nobody does."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keygroups.cli._parser import AddCommand, to_number
from keygroups.cli._reading import add_options, moved_places, read
from keygroups.cli._streams import json_line
from keygroups.errors import InvalidValueError, SavepointError, printable

if TYPE_CHECKING:
    from keygroups.savepoint import JobFile, JobFiles

_OLDEST = 24.0  # hours


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_files)
    place = "a savepoint or checkpoint, the folder of a job, or the URL of one"
    add("path", metavar="PATH", help=place)
    add.begin("what nobody needs, in the folder of a job")
    older = "the others are at least so many hours old (default: 24)"
    add("--older-than", type=to_number, default=_OLDEST, metavar="HOURS", help=older)
    more = "a job that was restored from a checkpoint here, by its folder; may be repeated"
    add("--other", action="append", default=[], metavar="PATH", help=more)
    add("--delete", action="store_true", help="delete what nobody needs and is older than that")
    add_options(add)


def _files(options: argparse.Namespace) -> Iterator[str]:
    """Print which files a savepoint needs, or of a job's folder which of them nobody needs.

    Of a savepoint or checkpoint: each file, its bytes and how many of them are used, whose state
    it has, and whether it is in a folder that checkpoints share.

    Of the folder of a job, the one with chk-N and shared: each file with the checkpoints that need
    it, those first that nobody needs. A checkpoint that cannot be read may need anything: then
    nothing is unused. What is in taskowned is never, as the tasks of a running job use it.
    Jobs that were restored from a checkpoint here may use its files too: name their folders by
    --other. Savepoints have files of their own.

    Nothing is deleted without --delete, and then only what nobody needs and is older than
    --older-than, on a second look at files and checkpoints just before.

    JSON: path and files (path, bytes, used_bytes, kind, operators, subtasks, is_shared). Of a
    job's folder: folder, checkpoints, unread (pairs of name and reason), files (path, bytes,
    written, used_by, is_owned_by_tasks), unused and deleted, the paths of those that are old
    enough.
    """
    from keygroups.savepoint import savepoint_files
    from keygroups.savepoint._files.job_folders import checkpoints_in

    if not options.older_than >= 0:
        raise InvalidValueError(f"--older-than must be at least 0 hours, got {options.older_than}")
    try:
        [savepoint] = read(options, options.path)
    except SavepointError:
        if not checkpoints_in(options.path):
            raise
        yield from _of_job(options)
        return
    if options.delete or options.other:
        raise InvalidValueError("--delete and --other go with the folder of a job")
    files = savepoint_files(savepoint)
    if options.json:
        yield json_line({"path": savepoint.path, "files": [file._asdict() for file in files]})
        return
    yield printable(savepoint.path)
    for file in files:
        size = "missing" if file.bytes is None else f"{file.used_bytes:,} of {file.bytes:,} bytes"
        whose = ", ".join((*file.operators, *map(str, file.subtasks)))
        shared = ", shared" if file.is_shared else ""
        yield printable(f"{file.path}: {size}, {file.kind} of {whose}{shared}")
    yield f"{len(files):,} files, {sum(file.used_bytes for file in files):,} bytes used"


def _of_job(options: argparse.Namespace) -> Iterator[str]:
    from keygroups.savepoint._reports.stored_files import delete_unused, old_enough

    before = dt.datetime.now(dt.timezone.utc) - dt.timedelta(hours=options.older_than)
    found = _look(options)
    unused, deleted = old_enough(found.unused, before), list["JobFile"]()
    if options.delete:
        deleted = delete_unused(found, _look(options), before)
    if options.json:
        yield json_line(_data(found, unused, deleted))
        return
    yield str(found)
    size = sum(file.bytes for file in unused)
    hours = f"{options.older_than:g} hours"
    yield f"{len(unused):,} files of {size:,} bytes that nobody needs are older than {hours}"
    for file in deleted:
        yield printable(f"deleted: {file.path}")


def _look(options: argparse.Namespace) -> JobFiles:
    from keygroups.savepoint import job_files

    return job_files(options.path, others=options.other, moved=moved_places(options))


def _data(found: JobFiles, unused: list[JobFile], deleted: list[JobFile]) -> dict[str, Any]:
    files = [
        file._asdict() | {"written": file.written and file.written.isoformat()}
        for file in found.files
    ]
    paths = ([file.path for file in made] for made in (unused, deleted))
    return vars(found) | {"files": files} | dict(zip(("unused", "deleted"), paths))
