"""The folder that a savepoint is written into: it appears whole, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from types import TracebackType
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from keygroups._checks import show
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    LeftoverWarning,
    SavepointError,
    printable,
)
from keygroups.savepoint._files.files import (
    METADATA,
    check_path,
    file_error,
    local_path,
)
from keygroups.savepoint._files.stores import filesystem_of

W = TypeVar("W", bound="FolderWriter")

# Schemes that fsspec can only read, or that stand for a place which a file or another URL names.
_NO_STORES = (
    *("blockcache", "cached", "data", "dir", "filecache", "generic", "git", "github", "gist"),
    *("http", "https", "libarchive", "reference", "simplecache", "tar", "zip"),
)
_LEFT = 3600  # seconds without a write, after which nobody is taken to be at work in a folder
_LEFTOVER = re.compile(r"\.(.*)\.[0-9a-f]{32}\.writing", re.DOTALL)


class OutputFolder:
    """A folder that is being written; it holds no file open and may be pickled.

    A local one is written beside its place, and renamed. At a URL, where there may be no
    renaming, it is written in its place, and is no savepoint before `_metadata`, its last file,
    is there. What cannot be written is a SavepointError.
    """

    def __init__(self, name: str, path: str) -> None:
        """Take the path or URL of a folder that is not there yet; an error calls it `name`."""
        stripped = path.rstrip("/")
        self.path = stripped if stripped and not stripped.endswith(":") else path
        self._name = name
        local = local_path(self.path)
        scheme = self.path.lower().partition("://")[0]
        if local is None and (scheme in _NO_STORES or "::" in self.path):
            raise InvalidValueError(
                f"{name} must be a path, or the URL of a store that files are written to, such as "
                f"s3://bucket/savepoint, got {show(path)}"
            )
        with _errors(self.path, Exception):
            # Absolute now, as the working directory may change while files are written.
            self._local = None if local is None else local.absolute()
            is_there = self._exists()
        if is_there:
            raise self._is_there()
        self._beside = Path()  # the local folder that is renamed at the end
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
    def writing_path(self) -> str:
        """Path or URL of its files until it is whole."""
        return self.path if self._local is None else str(self._beside)

    @property
    def _filesystem(self) -> Any:
        return filesystem_of(self.path)[0]

    def is_within(self, folder: str) -> bool:
        """Return whether the folder would be inside another, however the paths are spelled."""
        other = local_path(folder)
        if self._local is not None and other is not None:
            place = Path(os.path.realpath(self._local))
            return any(_is_same(parent, other) for parent in (place, *place.parents))
        if self._local is not None or other is not None:
            return False
        (ours, inner), (theirs, outer) = map(filesystem_of, (self.path, folder))
        return type(ours) is type(theirs) and _plain(inner).is_relative_to(_plain(outer))

    def leftovers(self) -> list[Path]:
        """Return the folders of writers to this place that were killed, or are still at work."""
        if self._local is None:
            return []
        with suppress(OSError), os.scandir(self._local.parent) as entries:
            return sorted(
                Path(entry.path)
                for entry in entries
                if (name := _LEFTOVER.fullmatch(entry.name))
                and name[1] == self._local.name
                and entry.is_dir(follow_symlinks=False)
            )
        return []

    def remove_leftovers(self) -> Iterator[Path]:
        """Remove the leftovers in which nothing was written for an hour, and yield each."""
        for folder in self.leftovers():
            try:
                if time.time() - _last_written(folder) > _LEFT:
                    shutil.rmtree(folder)
                    yield folder
            except FileNotFoundError:  # its writer has just ended
                continue
            except OSError as error:
                raise file_error(str(folder), "removed", error) from None

    def make(self) -> None:
        """Make the folder; where that fails, leave nothing."""
        if self._local is not None:
            with _errors(self.path, Exception):
                try:
                    self._beside.mkdir(parents=True)
                except Exception:
                    raise
                except BaseException:  # A signal came: no caller knows the folder to remove yet.
                    self.remove()
                    raise
            return
        # Two writers that make it at once both see it: one of them, or both, give up.
        claim = f".{uuid.uuid4().hex}.writing"
        with _errors(self.path, Exception):
            self._filesystem.makedirs(self.path, exist_ok=True)
            try:
                with self.create(claim):
                    pass
                if self._names() != {claim}:
                    raise self._is_there()
            except BaseException:
                with suppress(Exception):
                    self._delete(claim)
                raise

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file in the folder, which is on the disk when it is closed."""
        path = f"{self.path}/{name}"
        if self._local is None:
            file = _StoreOutput(self._filesystem, path)
            try:
                yield cast("BinaryIO", file)
            except BaseException:
                with suppress(SavepointError):  # The first error is the one to raise.
                    file.close()
                raise
            file.close()
        else:
            with _errors(path), (self._beside / name).open("xb") as local:
                yield local
                local.flush()
                os.fsync(local.fileno())

    def commit(self, names: Collection[str], metadata: bytes) -> None:
        """Make it a savepoint of the files with these names; others, of failed tasks, go."""
        with _errors(self.path, Exception):
            written = self._names()
            for name in written.difference(names):
                self._delete(name)
        missing = sorted(set(names) - written)
        if missing:
            raise SavepointError(f"{self.path}: cannot be written: {missing[0]} is gone")
        with self.create(METADATA) as file:
            file.write(metadata)
        if self._local is not None:
            with _errors(self.path):
                # This fails where a folder with files has come there since.
                self._beside.rename(self._local)

    def remove(self) -> None:
        """Remove all that was written, as far as that can be done."""
        if self._local is not None:
            shutil.rmtree(self._beside, ignore_errors=True)
            return
        with suppress(Exception):
            self._filesystem.rm(self.path, recursive=True)

    def _names(self) -> set[str]:
        if self._local is not None:
            return {path.name for path in self._beside.iterdir()}
        filesystem = self._filesystem
        filesystem.invalidate_cache()  # Other machines write too, unseen by the cache.
        return {path.rpartition("/")[2] for path in filesystem.ls(self.path, detail=False)}

    def _delete(self, name: str) -> None:
        if self._local is not None:
            (self._beside / name).unlink()
        else:
            self._filesystem.rm(f"{self.path}/{name}")

    @property
    def scratch(self) -> Path | None:
        """Local folder for temporary files; None stands for the machine's own."""
        return None if self._local is None else self._beside


class _StoreOutput:
    """A file of a store that is being written; its client may raise anything."""

    def __init__(self, filesystem: Any, path: str) -> None:
        self._path = path
        with _errors(path, Exception):
            self._file = filesystem.open(path, "wb")

    def write(self, data: bytes) -> None:
        """Write some bytes."""
        with _errors(self._path, Exception):
            self._file.write(data)

    def close(self) -> None:
        """Write the bytes that the client still holds; with that the file appears."""
        with _errors(self._path, Exception):
            self._file.close()


@contextmanager
def _errors(path: str, errors: type[Exception] = OSError) -> Iterator[None]:
    try:
        yield
    except KeyGroupsError:
        raise
    except errors as error:  # fsspec's stores raise any Exception.
        raise file_error(path, "written", error) from None


def replace_file(path: str, data: bytes) -> None:
    """Write a file, or replace it: it has all of the new bytes, or is as it was."""
    local = local_path(path)
    try:
        if local is None:
            filesystem, inner = filesystem_of(path)
            filesystem.pipe_file(inner, data)
            return
        beside = local.with_name(f".{local.name}.{uuid.uuid4().hex}.writing")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(local)
        finally:
            beside.unlink(missing_ok=True)
    except Exception as error:  # fsspec's stores raise any Exception.
        raise file_error(path, "written", error) from None


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False


def _plain(path: str) -> PurePosixPath:
    return PurePosixPath(normpath(f"/{path.lstrip('/')}"))


def _last_written(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))


class FolderWriter(ABC):
    """A context manager that writes a savepoint, which appears when the block has ended."""

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self._folder = OutputFolder(name, check_path(name, path))
        self._is_written = self._is_over = False

    def __reduce__(self) -> NoReturn:
        raise InvalidTypeError(
            f"a {type(self).__name__} cannot be copied or pickled, as it is one folder that it "
            "writes: its tasks can"
        )

    def __enter__(self: W) -> W:
        self._check_open()
        for folder in self._folder.leftovers():
            warnings.warn(
                f"{printable(str(folder))} was left by a writer that was killed, unless one is at "
                "work there: it may be removed, and --clean of `keygroups savepoint` does so when "
                "nothing was written to it for an hour",
                LeftoverWarning,
                stacklevel=2,
            )
        self._folder.make()
        return self

    def __exit__(
        self,
        cls: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over = True
        try:
            if error is None:
                self._folder.commit(*self._finish())
                self._is_written = True
        finally:
            if not self._is_written:
                self._abandon()
                self._folder.remove()

    def _check_open(self) -> None:
        """Refuse to write anything after the `with` block."""
        if self._is_over:
            raise InvalidValueError(f"{self._folder.path}: nothing can be added after the block")

    @abstractmethod
    def _abandon(self) -> None:
        """Close open files, before the folder is removed."""

    @abstractmethod
    def _finish(self) -> tuple[Collection[str], bytes]:
        """Write the last files; return the names of all and the bytes of `_metadata`."""
