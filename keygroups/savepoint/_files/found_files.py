"""Files that are not where `_metadata` says, found by their names among the savepoint's own.

Flink gives each file a random name, which no other has. Only folders that may be read anyway are
looked into, and no more of them than `_MOST` says.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from keygroups._checks import show
from keygroups.errors import SavepointError, printable
from keygroups.savepoint._files.files import (
    NOWHERE,
    Elsewhere,
    Files,
    FolderPath,
    errors_of,
    is_plain,
    is_server,
    job_folder,
    joined,
    local_path,
)
from keygroups.savepoint._files.stores import filesystem_of
from keygroups.savepoint._metadata.handles import Metadata, StreamHandle

# Flink: FsCheckpointStateOutputStream.createStatePath, and others, a UUID.randomUUID().
_RANDOM = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST = 100_000  # files and folders that are looked at in all
_OF_A_NAME = 3  # files of one name that are told apart by their folders; of more none is taken
_ASKED = 10  # missing folders that a store is asked for
_SHOWN = 600  # characters of folders in a message

StreamsByName = dict[str, StreamHandle]
"""Streams by the names of their files in a folder."""


def find_files(files: Files, metadata: Metadata) -> Elsewhere:
    """Return the folders that are not where `_metadata` says, with the places of those found.

    A folder that `_metadata` names is looked for if it may not be read, or is not on this disk.
    It is found if all of its files are in exactly one other folder.
    """
    folders: dict[str, StreamsByName] = {}
    for stream in streams_of(metadata):
        if not stream.is_relative:
            folder, _, name = stream.path.rpartition("/")
            folders.setdefault(folder, {})[name] = stream
    missing = {
        folder: names for folder, names in folders.items() if folder and _is_missing(files, names)
    }
    if not missing:
        return NOWHERE
    places = _listed(files, missing)
    paths = {stream.path for stream in streams_of(metadata)}
    times = Counter(path.rpartition("/")[2] for path in paths)
    found: dict[str, FolderPath] = {}
    known: dict[str, list[str]] = {}
    for folder, names in missing.items():
        common = _common(places, names)
        is_moved = any(map(files.is_moved, names.values()))  # The caller's word goes first.
        is_sure = all(times[name] == 1 and _RANDOM.search(name) for name in names)
        if len(common) == 1 and is_sure and not is_moved:
            found[folder] = common.pop()
        else:
            known[folder] = sorted(joined(*place) for place in common)
    return Elsewhere(found, frozenset(known), _advice(known))


def streams_of(metadata: Metadata) -> Iterator[StreamHandle]:
    """Yield the streams that are in files, one for each time that `_metadata` names it."""
    for handle in metadata.said():
        if isinstance(handle, StreamHandle) and handle.data is None:
            yield handle


def _is_missing(files: Files, names: StreamsByName) -> bool:
    """Tell whether the folder of some files is at no path that may be read."""
    streams = [stream for stream in names.values() if files.is_path(stream)]
    if not files.has_files:  # Else single files of the folder may be allowed, others not.
        streams = streams[:1]
    return bool(streams) and not any(_is_there(files, stream) for stream in streams)


def _is_there(files: Files, stream: StreamHandle) -> bool:
    """Tell whether the folder of a file may be read, and exists if it is on this machine."""
    try:
        local = local_path(files.path_of(stream))
    except SavepointError:
        return False
    return local is None or os.path.isdir(local.parent)  # noqa: PTH112  # it takes any text


def _listed(files: Files, missing: Mapping[str, StreamsByName]) -> dict[str, list[FolderPath]]:
    """Return the savepoint's own folders that have files named like missing ones, by name."""
    wanted = {name for names in missing.values() for name in names}
    places: dict[str, list[FolderPath]] = {}
    for name, place in _own(files, missing):
        if name in wanted and len(of_name := places.setdefault(name, [])) <= _OF_A_NAME:
            of_name.append(place)
    return places


def _common(places: Mapping[str, Collection[FolderPath]], names: Iterable[str]) -> set[FolderPath]:
    """Return the folders that have files of all names."""
    common: set[FolderPath] | None = None
    for name in names:
        of_name = places.get(name, ())
        if len(of_name) > _OF_A_NAME:
            return set()
        common = {*of_name} if common is None else common.intersection(of_name)
    return common or set()


def _own(files: Files, missing: Mapping[str, StreamsByName]) -> Iterator[tuple[str, FolderPath]]:
    """Yield the names and folders of the savepoint's own files; none where there are too many."""
    if local_path(files.base) is None:
        yield from _in_store(files, missing)
        return
    room = _MOST
    own: list[tuple[str, FolderPath]] = []
    folders = [*files.own_folders()]
    while folders:
        root, rest = folders.pop()
        path = local_path(joined(root, rest))
        assert path is not None
        if rest and path.is_symlink():  # Only the folders of a job may be links.
            continue
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                room -= 1
                if not room:
                    return
                # A link is no file, as it may lead out of here.
                if entry.is_dir(follow_symlinks=False):
                    folders.append((root, f"{rest}/{entry.name}"))
                elif entry.is_file(follow_symlinks=False):
                    own.append((entry.name, (root, rest)))
    yield from own


def _in_store(
    files: Files, missing: Mapping[str, StreamsByName]
) -> Iterator[tuple[str, FolderPath]]:
    """Yield the files in the savepoint's folder, and those of a few folders of its job.

    The job's shared folder may have the files of many checkpoints: it is not listed. For each
    missing folder the store is asked for one file at the same place in this job's folder.
    """
    base, *shared = files.own_folders()
    with suppress(SavepointError), errors_of(files.base):
        filesystem, inner = filesystem_of(files.base)
        if is_server(filesystem):  # A server of HTTP has files, but no list of them.
            return
        start = f"{inner.rstrip('/')}/"
        paths = filesystem.find(inner)
        for path in paths if len(paths) <= _MOST else ():
            if path.startswith(start):
                folder, _, name = path[len(start) - 1 :].rpartition("/")
                yield name, (base[0], folder)
        if shared:
            for folder, names in [*missing.items()][:_ASKED]:
                job = job_folder(f"{folder}/")
                name = next(iter(names))
                if job is not None and is_plain(f"{folder[len(job) :]}/{name}", is_url=True):
                    place = shared[0][0], folder[len(job) :]
                    path = f"{joined(*place)}/{name}"
                    if filesystem.exists(filesystem_of(path)[1]):
                        yield from ((name, place) for name in names)


def _advice(known: Mapping[str, Collection[str]]) -> str:
    """Return a `moved` for folders: each with the places where it may be now."""
    shown: list[str] = []
    room = _SHOWN
    for folder, places in known.items():
        now = " or ".join(map(show, places)) or "..."
        text = printable(f"{show(folder)}: {now}")
        room -= len(text)
        if shown and room < 0:
            return f"moved={{{', '.join(shown)}}}, and so on for {len(known) - len(shown)} more"
        shown.append(text)
    return f"moved={{{', '.join(shown)}}}"
