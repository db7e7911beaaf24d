"""The folder that a savepoint is written into: it appears whole, or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar, cast

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint._files import (
    METADATA,
    check_path,
    file_error,
    import_fsspec,
    local_path,
)

W = TypeVar("W", bound="FolderWriter")

# Of a path that the machine, or fsspec and what it needs for a URL, can do nothing with.
_UNUSABLE = (OSError, ValueError, ImportError, NotImplementedError)


class OutputFolder:
    """A folder that is being written; it holds no file open and may be pickled.

    A local one is written beside its place, and renamed. At a URL, where there may be no
    renaming, it is written in its place, and is no savepoint before `_metadata`, its last file,
    is there. What cannot be written is a SavepointError.
    """

    def __init__(self, name: str, path: str) -> None:
        """Take the path or URL of a folder that is not there yet; an error calls it `name`."""
        self.path = path.rstrip("/") or path
        self._name = name
        local = local_path(self.path)
        with self._errors(self.path, _UNUSABLE):
            # Whatever the working directory is later.
            self._local = None if local is None else local.absolute()
            is_there = self._exists()
        if is_there:
            raise self._is_there()
        self._beside = Path()  # where a local one is written
        if self._local is not None:
            name = f".{self._local.name}.{uuid.uuid4().hex}.writing"
            self._beside = self._local.with_name(name)

    def __repr__(self) -> str:
        return f"<OutputFolder {self.path}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputFolder) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.path)

    def _exists(self) -> bool:
        if self._local is None:
            return bool(self._filesystem.exists(self.path))
        with suppress(FileNotFoundError):
            self._local.lstat()
            return True
        return False

    def _is_there(self) -> InvalidValueError:
        return InvalidValueError(
            f"{self._name} must be of a new folder, got {self.path!r}: it is there"
        )

    @property
    def _filesystem(self) -> Any:
        return import_fsspec(self.path).core.url_to_fs(self.path)[0]

    def make(self) -> None:
        """Make the folder."""
        with self._errors(self.path, _UNUSABLE):
            if self._local is not None:
                self._beside.mkdir(parents=True)
                return
            self._filesystem.makedirs(self.path, exist_ok=True)
        # Two writers that make it at once both see it: one of them, or both, give up.
        claim = f".{uuid.uuid4().hex}.writing"
        with self.create(claim):
            pass
        with self._errors(self.path):
            if self._names() != {claim}:
                self._delete(claim)
                raise self._is_there()

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file in the folder, which is on the disk when it is closed."""
        with self._errors(f"{self.path}/{name}"):
            if self._local is None:
                with self._filesystem.open(f"{self.path}/{name}", "wb") as file:
                    yield cast("BinaryIO", file)
            else:
                with (self._beside / name).open("xb") as local:
                    yield local
                    local.flush()
                    os.fsync(local.fileno())

    def commit(self, names: Collection[str], metadata: bytes) -> None:
        """Make it a savepoint of the files with these names; others, of failed tasks, go."""
        with self._errors(self.path):
            found = self._names()
            for name in found.difference(names):
                self._delete(name)
        missing = sorted(set(names) - found)
        if missing:
            raise SavepointError(f"{self.path}: cannot be written: {missing[0]} is gone")
        with self.create(METADATA) as file:
            file.write(metadata)
        if self._local is not None:
            with self._errors(self.path):
                self._beside.rename(self._local)  # which fails where there is a full folder now

    def remove(self) -> None:
        """Remove all that was written, as far as that can be done."""
        if self._local is not None:
            shutil.rmtree(self._beside, ignore_errors=True)
            return
        with suppress(OSError):
            self._filesystem.rm(self.path, recursive=True)

    def _names(self) -> set[str]:
        if self._local is not None:
            return {path.name for path in self._beside.iterdir()}
        filesystem = self._filesystem
        filesystem.invalidate_cache()  # which does not know what other machines have written
        return {path.rpartition("/")[2] for path in filesystem.ls(self.path, detail=False)}

    def _delete(self, name: str) -> None:
        if self._local is not None:
            (self._beside / name).unlink()
        else:
            self._filesystem.rm(f"{self.path}/{name}")

    @contextmanager
    def _errors(
        self, path: str, errors: tuple[type[Exception], ...] = (OSError,)
    ) -> Iterator[None]:
        try:
            yield
        except errors as error:
            raise file_error(path, "written", error) from None

    @property
    def scratch(self) -> Path | None:
        """The local folder for files that go before the end, None for the machine's own."""
        return None if self._local is None else self._beside


class FolderWriter(ABC):
    """What writes a savepoint in a `with` block, at the end of which it is there."""

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self._folder = OutputFolder(name, check_path(name, path))

    def __enter__(self: W) -> W:
        self._folder.make()
        return self

    def __exit__(
        self,
        cls: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_whole = False
        try:
            if error is None:
                self._folder.commit(*self._finish())
                is_whole = True
        finally:
            if not is_whole:
                self._abandon()
                self._folder.remove()

    @abstractmethod
    def _abandon(self) -> None:
        """Close what is open, before all is removed."""

    @abstractmethod
    def _finish(self) -> tuple[Collection[str], bytes]:
        """Write what is left; return the names of the files and the bytes of `_metadata`."""
