"""Who uses which file: of one savepoint, and of all checkpoints in a job's folder."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from keygroups._checks import check_class, iterate, show
from keygroups.errors import InvalidValueError, KeyGroupsError, SavepointError
from keygroups.savepoint._files.files import (
    METADATA,
    check_path,
    errors_of,
    joined,
    local_path,
)
from keygroups.savepoint._files.found_files import streams_of
from keygroups.savepoint._files.job_folders import all_checkpoints_in, time_of
from keygroups.savepoint._files.same_bytes import FileIds, Id, id_of_url
from keygroups.savepoint._files.stores import filesystem_of
from keygroups.savepoint._metadata.handles import (
    OperatorMetadata,
    StreamHandle,
)
from keygroups.savepoint._savepoint import Savepoint, read_savepoint
from keygroups.savepoint.storage import JobFile, JobFiles, SavepointFile

_TASKS = "taskowned"


class _FileUse(NamedTuple):
    operator: str
    subtask: int | None
    kind: str
    stream: StreamHandle


def savepoint_files(savepoint: Savepoint) -> tuple[SavepointFile, ...]:
    """Return a SavepointFile for each file that a savepoint needs, the largest first.

    `_metadata` is not among them; state that is in it is in no file. Each is asked for its size.
    Raises InvalidTypeError for what is no Savepoint.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
    >>> from keygroups.types import LONG, STRING
    >>> folder = mkdtemp() + "/savepoint"
    >>> with SavepointWriter(folder) as writer:
    ...     counts = [ValueStateDescriptor("count", LONG)]
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
    ...     by_user.write("count", "ann", 7)
    >>> [file] = savepoint_files(read_savepoint(folder))
    >>> file.bytes, file.used_bytes, file.kind, file.subtasks
    (397, 397, 'keyed state', (2,))
    """
    files = check_class("savepoint", savepoint, Savepoint, "a Savepoint").files
    ids, by_file = FileIds(files), dict[Id, list[_FileUse]]()
    labels = {operator.operator_id: operator.label for operator in savepoint.operators}
    for operator in savepoint.metadata.operators:
        for use in _uses(operator, labels[operator.operator_id]):
            if use.stream.data is None:
                by_file.setdefault(ids.of(use.stream), []).append(use)
    made = (_file_of(savepoint, uses) for uses in by_file.values())
    return tuple(sorted(made, key=lambda file: (-(file.bytes or 0), file.path)))


def _file_of(savepoint: Savepoint, uses: list[_FileUse]) -> SavepointFile:
    stream = uses[0].stream
    path = stream.path
    with suppress(SavepointError):  # A file that may not be read has the path that it was given.
        path = savepoint.files.path_of(stream)
    spans = {(use.stream.start, use.stream.file_size) for use in uses}
    return SavepointFile(
        path,
        _size_of(path),
        sum(size for _, size in spans),
        uses[0].kind,
        tuple(dict.fromkeys(use.operator for use in uses)),
        tuple(sorted({use.subtask for use in uses if use.subtask is not None})),
        not _plain(path).startswith(joined(_plain(savepoint.path), "/")),
    )


def _plain(path: str) -> str:
    """Return a local path absolute, without the scheme that it may have."""
    local = local_path(path)
    return path if local is None else os.path.abspath(local)  # noqa: PTH100  # It takes out "..", which Path.absolute keeps.


def _size_of(path: str) -> int | None:
    local = local_path(path)
    with suppress(KeyGroupsError, OSError, ValueError):
        if local is not None:
            return os.stat(local).st_size  # noqa: PTH116  # it takes any text
        with errors_of(path):
            filesystem, inner = filesystem_of(path)
            size = filesystem.info(inner).get("size")
            return size if isinstance(size, int) else None
    return None


def _uses(operator: OperatorMetadata, label: str) -> Iterator[_FileUse]:
    if operator.coordinator is not None:
        yield _FileUse(label, None, "coordinator", operator.coordinator)
    for task in operator.subtasks:
        for handle in (task.managed_operator, task.raw_operator):
            if handle is not None:
                yield _FileUse(label, task.index, "operator state", handle.stream)
        for keyed in task.keyed:
            for stream in keyed.streams:
                yield _FileUse(label, task.index, "keyed state", stream)
        channels = task.as_read.get("channels")
        places = () if channels is None else channels.places
        handles = [named for _, _, named in places if isinstance(named, StreamHandle)]
        yield from (_FileUse(label, task.index, "in-flight data", handle) for handle in handles)


# --- the folder of a job --------------------------------------------------------------------


def job_files(
    folder: str | os.PathLike[str],
    *,
    others: Iterable[str | os.PathLike[str]] = (),
    moved: Mapping[str, str] | None = None,
) -> JobFiles:
    """Return the JobFiles of a job's folder, the one that has its `chk-N` and `shared`.

    Every checkpoint in it is read, as far as `_metadata` goes, and those in `others`, folders of
    jobs that were restored from one of these and may use its files still. A file is used where a
    checkpoint names it by its path, or by its own name, which Flink gives to no other. `moved` is
    that of `read_savepoint`.

    Raises SavepointError where the folder cannot be listed, InvalidTypeError for what is no path,
    InvalidValueError for a folder that is a checkpoint itself or has folders of jobs, and for one
    of `others` that has no checkpoint or comes twice.

    Flink: FLINK-30461, of shared files that are left behind.
    """
    path = _without_slash(check_path("folder", folder))
    local = local_path(path)
    start = joined(path if local is None else os.fspath(local), "/")
    listed = [*_listed(path)]
    for file in listed:
        place, _, name = file.path[len(start) :].rpartition("/")
        if name == METADATA and (not place or "/" in place):
            what = f"the folder above {show(place)}" if place else "a checkpoint"
            raise InvalidValueError(f"folder must be that of a job, got {show(path)}, {what}")
    users: dict[Id | str, set[str]] = {}
    read, unread = [], []
    homes: set[str] = set()
    for other in chain([path], iterate("others", "paths", others)):
        home = _without_slash(check_path("folder in others", other))
        if home in homes:
            raise InvalidValueError(f"others must have each other folder once, got {show(home)}")
        homes.add(home)
        checkpoints = all_checkpoints_in(home)
        if home != path and not checkpoints:
            raise InvalidValueError(
                f"others must be folders of jobs with checkpoints, got {show(home)}, without one"
            )
        for found in checkpoints:
            name = found.path.rpartition("/")[2] if home == path else found.path
            try:
                _note(read_savepoint(found.path, moved), name, users)
                read.append(name)
            except SavepointError as error:
                unread.append((name, str(error)))
    files = tuple(_job_file(file, file.path[len(start) :], users) for file in listed)
    return JobFiles(path, tuple(read), tuple(unread), files)


def _note(savepoint: Savepoint, name: str, users: dict[Id | str, set[str]]) -> None:
    """Add a checkpoint to the users of each file that it names, by id and by name."""
    ids = FileIds(savepoint.files)
    for stream in streams_of(savepoint.metadata):
        users.setdefault(ids.of(stream), set()).add(name)
        users.setdefault(stream.path.rpartition("/")[2], set()).add(name)


class _Listed(NamedTuple):
    path: str
    bytes: int
    written: dt.datetime | None
    id: Id


def _without_slash(path: str) -> str:
    return path.rstrip("/") or path


def _job_file(file: _Listed, rest: str, users: Mapping[Id | str, set[str]]) -> JobFile:
    top, _, name = rest.rpartition("/")
    used_by = users.get(file.id, set()) | users.get(name, set())
    if name == METADATA:
        used_by = {top}
    is_owned = rest.startswith(f"{_TASKS}/")
    return JobFile(file.path, file.bytes, file.written, tuple(sorted(used_by)), is_owned)


def _listed(folder: str) -> Iterator[_Listed]:
    """Yield the files in a folder and those in it; links are none."""
    local = local_path(folder)
    with errors_of(folder):
        if local is not None:
            yield from _on_disk(os.fspath(local))
            return
        filesystem, inner = filesystem_of(folder)
        filesystem.invalidate_cache()  # Flink's own machines write too, unseen by the cache.
        start = f"{filesystem._strip_protocol(inner).rstrip('/')}/"
        for name, info in filesystem.find(inner, detail=True).items():
            if name.startswith(start):
                path = joined(folder, f"/{name[len(start) :]}")
                yield _Listed(path, int(info["size"]), time_of(info), id_of_url(path))


def _on_disk(folder: str) -> Iterator[_Listed]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _on_disk(entry.path)
            elif entry.is_file(follow_symlinks=False):
                info = entry.stat(follow_symlinks=False)
                time = dt.datetime.fromtimestamp(info.st_mtime, dt.timezone.utc)
                yield _Listed(entry.path, info.st_size, time, (info.st_dev, info.st_ino))


def old_enough(files: Iterable[JobFile], before: dt.datetime) -> list[JobFile]:
    """Return the files that were written before a time; one whose time is not told is not."""
    return [file for file in files if file.written is not None and file.written < before]


def delete_unused(first: JobFiles, second: JobFiles, before: dt.datetime) -> list[JobFile]:
    """Delete the files that two looks found unused and older than a time, and return them.

    The second look has to be of just now: a checkpoint that is new in it, or a file that was
    written anew, keeps what it needs. Raises SavepointError for what cannot be deleted.
    """
    doomed = set(old_enough(first.unused, before))
    deleted = []
    for file in old_enough(second.unused, before):
        if file in doomed:
            with errors_of(file.path):
                local = local_path(file.path)
                if local is not None:
                    Path(local).unlink()
                else:
                    filesystem, inner = filesystem_of(file.path)
                    filesystem.rm_file(inner)
            deleted.append(file)
    return deleted
