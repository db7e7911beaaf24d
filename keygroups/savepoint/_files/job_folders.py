"""The checkpoints in the folder of a job, and the savepoints in a folder of these."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from keygroups.errors import SavepointError, printable
from keygroups.savepoint._files.files import METADATA, Files, errors_of, joined, local_path
from keygroups.savepoint._files.stores import filesystem_of

_Errors: TypeAlias = tuple[type[OSError], ...]

_MOST = 1000  # folders that are looked into
_SHOWN = 10  # checkpoints in a message
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")  # names in stores


class FoundCheckpoint(NamedTuple):
    """A folder with a `_metadata`: its path or URL, and when that was written, if it is told."""

    path: str
    written: dt.datetime | None

    def __str__(self) -> str:
        name = printable(self.path.rpartition("/")[2])
        return name if self.written is None else f"{name} ({self.written:%Y-%m-%d %H:%M} UTC)"


def metadata_of(files: Files) -> tuple[bytes, str]:
    """Return the bytes of `_metadata` and its path; an error names a folder's checkpoints."""
    try:
        return files.metadata()
    except SavepointError:
        found = checkpoints_in(files.base)
        if not found:
            raise
    names = ", ".join(map(str, found[:_SHOWN]))
    more = f", and {len(found) - _SHOWN:,} older ones" if len(found) > _SHOWN else ""
    raise SavepointError(
        f"{files.base}: it has no {METADATA}, but is the folder of a job or of savepoints: name "
        f"one of {names}{more}"
    ) from None


def checkpoints_in(folder: str) -> list[FoundCheckpoint]:
    """Return the checkpoints and savepoints in a folder, newest first, for a message to name.

    What cannot be looked into is passed over, and so are the last of very many folders.
    """
    try:
        return _found(folder, _MOST, (OSError,))
    except SavepointError:
        return []


def all_checkpoints_in(folder: str) -> list[FoundCheckpoint]:
    """Return every one, newest first; SavepointError where one that is there may be missed."""
    return _found(folder, None, (FileNotFoundError, NotADirectoryError))


def time_of(info: dict[str, Any]) -> dt.datetime | None:
    """Return the time that a store tells of a file, in UTC, None where it tells none."""
    time = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if isinstance(time, (int, float)):
        return dt.datetime.fromtimestamp(time, dt.timezone.utc)
    if isinstance(time, str):
        with suppress(ValueError):
            time = dt.datetime.fromisoformat(time.replace("Z", "+00:00"))
    if not isinstance(time, dt.datetime):
        return None
    zone = time.tzinfo or dt.timezone.utc
    return time.replace(tzinfo=zone).astimezone(dt.timezone.utc)


def _newest(found: FoundCheckpoint) -> tuple[float, str]:
    return (found.written.timestamp() if found.written else 0.0), found.path


def _found(folder: str, most: int | None, absent: _Errors) -> list[FoundCheckpoint]:
    """Return the checkpoints of that many folders in it; one without `_metadata` is `absent`."""
    local = local_path(folder)
    with errors_of(folder):
        if local is None:
            return sorted(_in_store(folder, most, absent), key=_newest, reverse=True)
        return sorted(_on_disk(os.fspath(local), most, absent), key=_newest, reverse=True)


def _on_disk(folder: str, most: int | None, absent: _Errors) -> Iterator[FoundCheckpoint]:
    with os.scandir(folder) as entries:
        for entry in islice(entries, most):
            with suppress(*absent):
                written = os.lstat(joined(entry.path, f"/{METADATA}")).st_mtime
                time = dt.datetime.fromtimestamp(written, dt.timezone.utc)
                yield FoundCheckpoint(joined(folder, f"/{entry.name}"), time)


def _in_store(folder: str, most: int | None, absent: _Errors) -> Iterator[FoundCheckpoint]:
    filesystem, inner = filesystem_of(folder)
    filesystem.invalidate_cache()  # Flink's own machines write too, unseen by the cache.
    for entry in filesystem.ls(inner, detail=True)[:most]:
        name = entry["name"].rstrip("/").rpartition("/")[2]
        with suppress(*absent):
            info = filesystem.info(f"{entry['name'].rstrip('/')}/{METADATA}")
            yield FoundCheckpoint(joined(folder, f"/{name}"), time_of(info))
