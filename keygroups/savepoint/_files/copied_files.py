"""Copies files of savepoints into a new one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from keygroups.savepoint._files.files import METADATA, Files
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._files.same_bytes import FileIds, Id
from keygroups.savepoint._metadata.handles import StreamHandle

# A plain name: every system and store takes it for a file in the folder.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


class CopiedFiles:
    """Copies the files of savepoints into a folder, each once; `names` are those of the copies.

    A file of a savepoint's own folder keeps its name, unless that is taken, also in other case,
    or is not plain. All others get new names, and so do inline streams whose name an earlier
    savepoint has: to Flink two streams of one name are one and the same.
    """

    def __init__(self, folder: OutputFolder) -> None:
        self.names: list[str] = []
        self._folder = folder
        self._taken = {METADATA}
        self._inline: dict[str, dict[str, str]] = {}  # `renamed` of a name's first user

    def of(self, files: Files) -> Callable[[StreamHandle], StreamHandle]:
        """Return a function that copies a stream, and returns its handle in the new folder.

        A copy that keeps path and name has the handle itself.
        """
        ids = FileIds(files)
        copies: dict[tuple[Id, StreamHandle], StreamHandle] = {}
        renamed: dict[str, str] = {}

        def copied(stream: StreamHandle) -> StreamHandle:
            if stream.data is None:
                # Handles of the same bytes share a copy, even if their paths are spelled apart.
                place = ids.of(stream), replace(stream, path="", is_relative=False)
                if place not in copies:
                    copies[place] = self._copy(files, stream)
                return copies[place]
            if not stream.name or self._inline.setdefault(stream.name, renamed) is renamed:
                return stream
            return replace(stream, name=renamed.setdefault(stream.name, str(uuid4())))

        return copied

    def _copy(self, files: Files, stream: StreamHandle) -> StreamHandle:
        is_kept = bool(
            stream.is_relative
            and _NAME.fullmatch(stream.path)
            and stream.path.lower() not in self._taken
        )
        name = stream.path if is_kept else f"copied-{uuid4().hex}"
        with files.open(stream) as source, self._folder.create(name) as target:
            for chunk in source.chunks(0, source.size):
                target.write(chunk)
        self._taken.add(name.lower())
        self.names.append(name)
        if is_kept:
            return stream
        return StreamHandle(stream.size, path=name, is_relative=True, uncounted=stream.uncounted)
