"""Streams of a savepoint that are the same bytes, told by the file that is opened, not its name.

Flink has one handle for nearly every stream. After a change of parallelism several subtasks of
one operator may have the same SST files and materialized state; several operators may have the
same files of channels, and of changes. Other handles that share bytes are refused: a small file
that many of them name would become any amount of state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote

from keygroups._checks import show
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint._files.files import (
    METADATA,
    Files,
    errors_of,
    local_path,
)
from keygroups.savepoint._files.stores import class_of_store, fsspec_url
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    KeyedHandle,
    Metadata,
    OperatorMetadata,
    StreamHandle,
)

# Most files have such names; a path that ends in one may be read if its folder may.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_OWN, _SHARED, _CHANGES, _CHANNEL = "own", "shared", "changes", "channel"

Id = tuple[Hashable, ...]
_Streams = list[tuple[str, int, StreamHandle]]
"""Streams of a handle: (kind, offset of its first change or 0, stream) each."""


class FileIds:
    """Tells the files of a savepoint apart; none of them is opened."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[tuple[str, bool], Id] = {}
        self._folders: dict[tuple[str, bool], str] = {}  # local folders, by path and is_relative

    def of(self, stream: StreamHandle) -> Id:
        """Return the device and inode of a stream's file, or its key in a store.

        A file that is not there, or may not be read, has its path as id.
        """
        named = stream.path, stream.is_relative
        known = self._known.get(named)
        if known is None:
            known = self._known[named] = self._id(stream)
        return known

    def _id(self, stream: StreamHandle) -> Id:
        try:
            path = self._local_path(stream)
            if path is None:
                return id_of_url(self._files.path_of(stream))
            info = os.stat(path)  # noqa: PTH116  # there are many, and a Path for each takes longer
            if info.st_ino:  # Some file systems have no inodes, and say 0.
                return info.st_dev, info.st_ino
        except (KeyGroupsError, OSError, ValueError):  # Whoever opens the stream gets the error.
            pass
        return stream.is_relative, normpath(
            stream.path if stream.is_relative else unquote(stream.path)
        )

    def _local_path(self, stream: StreamHandle) -> str | None:
        """Return the path of a local file, else None; a folder is checked once for its files."""
        folder, _, name = stream.path.rpartition("/")
        is_alike = not self._files.has_places and _NAME.fullmatch(name)
        place = self._folders.get((folder, stream.is_relative)) if is_alike else None
        if place is not None:
            return f"{place}/{name}"
        local = local_path(self._files.path_of(stream))
        if local is not None and is_alike:
            self._folders[folder, stream.is_relative] = str(local.parent)
        return None if local is None else str(local)


def id_of_url(url: str) -> Id:
    """Return the file system class of a URL and the path in it: a store may have two schemes."""
    with errors_of(url):
        cls = class_of_store(url)
        return cls, cls._strip_protocol(fsspec_url(url))


class _Use(NamedTuple):
    """A use of the bytes of a file from `start` to `end` by the handle of an operator."""

    file: Id
    start: int
    end: int
    operator: str
    handle: int
    kind: str
    offset: int
    stream: StreamHandle


_span = attrgetter("start", "end")


def check_apart(files: Files, metadata: Metadata) -> None:
    """Raise SavepointError where two handles name the same bytes, as none of Flink's do."""
    ids = FileIds(files)
    by_file: dict[Id, list[_Use]] = {}
    for operator in metadata.operators:
        for use in _uses(ids, operator):
            by_file.setdefault(use.file, []).append(use)
    for uses in by_file.values():
        end, last = 0, uses[0]
        for (start, _), group in groupby(sorted(uses, key=_span), _span):
            same = [*group]
            if start < end:
                raise _error(files, last, same[0])
            end, last = same[0].end, same[0]
            _check_same(files, same)


def _check_same(files: Files, uses: Sequence[_Use]) -> None:
    """Raise SavepointError unless Flink may write all uses of the same bytes."""
    first = uses[0]
    seen: dict[int, str] = {}  # operator ids, by number of handle or offset
    for use in uses:
        place = use.handle if use.kind == _SHARED else use.offset
        if use.kind == _SHARED:
            is_allowed = use.operator == first.operator and place not in seen
        elif use.kind == _CHANGES:
            is_same = seen.get(place, use.operator) == use.operator
            is_allowed = is_same and use.stream == first.stream
        else:
            is_allowed = use is first or use.kind == _CHANNEL
        if use.kind != first.kind or not is_allowed:
            raise _error(files, first, use)
        seen[place] = use.operator


def _error(files: Files, use: _Use, other: _Use) -> SavepointError:
    names = dict.fromkeys((use.stream.path, other.stream.path))
    return SavepointError(
        f"{files.base}/{METADATA}: two handles name the same bytes of the file "
        f"{', which is also '.join(map(show, names))}"
    )


def _uses(ids: FileIds, operator: OperatorMetadata) -> Iterator[_Use]:
    for number, streams in enumerate(_handles(operator)):
        for kind, offset, stream in streams:
            if stream.data is None and stream.size:
                end = stream.start + stream.file_size
                place = ids.of(stream), stream.start, end
                yield _Use(*place, operator.operator_id, number, kind, offset, stream)


def _handles(operator: OperatorMetadata) -> Iterator[_Streams]:
    """Yield the streams of each handle of an operator."""
    if operator.coordinator is not None:
        yield [(_OWN, 0, operator.coordinator)]
    for task in operator.subtasks:
        for handle in (task.managed_operator, task.raw_operator):
            if handle is not None:
                yield [(_OWN, 0, handle.stream)]
        for keyed in task.keyed:
            yield from _keyed_handles(keyed, _OWN)
        channels = task.as_read.get("channels")
        if channels is not None:
            handles = [handle for _, _, handle in channels.places]
            yield [(_CHANNEL, 0, each) for each in handles if isinstance(each, StreamHandle)]


def _keyed_handles(handle: KeyedHandle, kind: str) -> Iterator[_Streams]:
    """Yield the streams of a handle of keyed state, then of each handle that it holds."""
    if isinstance(handle, ChangelogHandle):
        for base in handle.materialized:
            yield from _keyed_handles(base, _SHARED)
        for changes in handle.changes:
            yield [(_CHANGES, offset, stream) for offset, stream in changes.streams]
    else:  # Checkpoints share files of RocksDB, which come after its header.
        first, *shared = handle.streams
        yield [(kind, 0, first)]
        yield [(_SHARED, 0, stream) for stream in shared]
