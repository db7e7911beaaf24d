"""Relocation of a copied checkpoint: new paths of its files in its `_metadata`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from keygroups._checks import show
from keygroups.errors import InvalidValueError, SavepointError, printable
from keygroups.savepoint._files.files import (
    METADATA,
    Files,
    check_moved,
    check_place,
    job_folder,
    moved_path,
    path_in_metadata,
)
from keygroups.savepoint._files.output_folder import replace_file
from keygroups.savepoint._metadata.handles import Metadata, StreamHandle
from keygroups.savepoint._metadata.reader import read_metadata
from keygroups.savepoint._metadata.writer import (
    moved_to,
    write_metadata,
    write_operator,
    written_version,
)
from keygroups.savepoint._named_operators import known_uids
from keygroups.savepoint._savepoint import Savepoint, read_savepoint

_NAMED = 10  # folders or files in a message


def relocate(
    checkpoint: Savepoint | str | os.PathLike[str],
    new_folder: str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
) -> Savepoint:
    """Make a checkpoint that was copied to another disk or bucket one that Flink restores there.

    Checkpoints name the files that they share with others by absolute paths, so that a copy has
    those of where it was. `checkpoint` is what `read_savepoint` returns, or a path: of the old
    checkpoint or of its copy. `new_folder` is the path or URL of the copy, as Flink is to find
    it, with its files. Its `_metadata` is replaced at once, or comes to be there if it was not.

    `moved` maps what paths start with to where these files are now, as in `read_savepoint`.
    Without it the files of one job's folder, with `shared`, `taskowned` and the `chk-N`, are
    taken to be in the folder of the new `chk-N`. Files in the new folder itself are then named
    relatively, all others by the paths of where they are now. Every file has to be there, with
    its size. What is relative already, as in savepoints, stays as it is.

    Returns the checkpoint as it is there. Raises SavepointError for files that are not there, or
    of which it is not told where they are, and where `_metadata` is damaged or cannot be written;
    InvalidValueError where the new folder has the `_metadata` of another checkpoint, and for a
    path in `moved` that names no folder; InvalidTypeError for what is no path.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import SavepointWriter
    >>> copy = mkdtemp()
    >>> with SavepointWriter(copy + "/chk-7") as writer:
    ...     pass  # as a job writes one, with files in shared beside it
    >>> relocate(copy + "/chk-7", copy + "/chk-7").checkpoint_id
    1
    """
    prefixes = check_moved(moved)
    if not isinstance(checkpoint, Savepoint):
        checkpoint = read_savepoint(checkpoint)
    # `base` is the folder as Files spells every path, with no slash at its end.
    folder = Files(check_place("new_folder", new_folder), {}).base
    places = _Places(checkpoint, folder, prefixes)
    version = written_version(checkpoint.version)
    metadata = replace(checkpoint.metadata, version=version)
    moved_handles = moved_to(places.path_of, places.name_of)
    data = write_metadata(
        metadata,
        [write_operator(operator, version, moved_handles) for operator in metadata.operators],
    )
    allowed = [*prefixes.values()]
    files = Files(folder, {}, allowed)
    _check_files(files, read_metadata(data, f"{folder}/{METADATA}"))
    with suppress(SavepointError):  # a _metadata that is missing or damaged may be replaced
        found, path = files.metadata()
        if found not in (data, checkpoint.files.metadata()[0]):
            raise InvalidValueError(
                f"new_folder must be of a copy of {checkpoint.path}, and {path} is of another "
                "checkpoint"
            )
    replace_file(f"{folder}/{METADATA}", data)
    uids = known_uids(checkpoint.operators)
    return read_savepoint(folder, uids=uids, allow=allowed, serializers=checkpoint.serializers)


class _Places:
    """The new paths of the files of a checkpoint that was copied to a folder."""

    def __init__(self, checkpoint: Savepoint, folder: str, moved: Mapping[str, str]) -> None:
        self._folder = path_in_metadata(folder)
        self._moved = {old: path_in_metadata(new) for old, new in moved.items()}
        new_job = job_folder(f"{self._folder}/")
        for known in [*self._moved.values(), new_job or self._folder]:
            self._moved.setdefault(known, known)  # files relocated before are named so already
        unknown: dict[str, None] = {}  # folders in the order of _metadata
        jobs: dict[str, None] = {}
        for path in _absolute_paths(checkpoint.metadata):
            if moved_path(path, self._moved) is None:
                job = job_folder(f"{path}/")  # the path itself may be the job's folder
                jobs[job or ""] = None
                unknown[job or path.rpartition("/")[0]] = None
        if not moved and len(jobs) == 1 and "" not in jobs and new_job is not None:
            self._moved.update(dict.fromkeys(jobs, new_job))
        elif unknown:
            named = ", ".join(show(prefix) for prefix in [*unknown][:_NAMED])
            raise SavepointError(
                f"{checkpoint.path}/{METADATA}: it is not known where the files of {len(unknown)} "
                f"folders are now: pass moved={{old: new}} for {named}"
            )

    def path_of(self, path: str) -> str:
        """Return the new path of a file or folder."""
        place = moved_path(path, self._moved)
        assert place is not None
        return "".join(place)

    def name_of(self, path: str) -> str:
        """Return a file's path relative to the new folder, "" if it is elsewhere."""
        new, start = self.path_of(path), f"{self._folder}/"
        return new.removeprefix(start) if new.startswith(start) else ""


def _absolute_paths(metadata: Metadata) -> Iterator[str]:
    for named in metadata.said():
        if isinstance(named, str):
            yield named
        elif isinstance(named, StreamHandle) and named.data is None and not named.is_relative:
            yield named.path


def _check_files(files: Files, metadata: Metadata) -> None:
    """Check that every file is there, with its size."""
    streams = dict.fromkeys(
        named
        for named in metadata.said()
        if isinstance(named, StreamHandle) and named.data is None
    )
    missing = []
    with files.ahead((stream, ()) for stream in streams) as opened:
        for stream in streams:
            try:
                with opened.open(stream):
                    pass
            except SavepointError as error:
                missing.append(str(error))
    if missing:
        raise SavepointError(
            f"{files.base}: {len(missing)} of {len(streams)} files are not there, such as "
            f"{printable('; '.join(missing[:_NAMED]))}"
        )
