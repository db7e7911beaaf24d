"""Where the bytes of a savepoint come from: `_metadata`, local files, or any that fsspec opens."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import BinaryIO, cast
from urllib.parse import unquote

from keygroups._checks import show
from keygroups.errors import InvalidTypeError, KeyGroupsError, SavepointError
from keygroups.savepoint._metadata import StreamHandle

METADATA = "_metadata"
_SHOWN = 500  # characters of a path or a reason in a message
CHUNK = 1 << 18
"""How many bytes of a stream are held at once, as long as each entry is shorter."""


class Files:
    """Opens the streams of one savepoint; it holds no file open and may be pickled."""

    def __init__(self, path: str, moved: Mapping[str, str]) -> None:
        """Take the folder of `_metadata`, that file, or the URL of either."""
        folder, slash, name = path.rpartition("/")
        if name == METADATA:
            path = folder
        self.base = path.rstrip("/") or slash or "."
        self._moved = dict(moved)

    def __repr__(self) -> str:
        return f"<Files {self.base}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.base)

    def metadata(self) -> tuple[bytes, str]:
        """Return the bytes of `_metadata`, and its path."""
        path = f"{self.base}/{METADATA}"
        with _open(path) as file:
            return file.read(), path

    def path_of(self, stream: StreamHandle) -> str:
        """Return the path or URL of a stream's file, which is not in `_metadata`."""
        if stream.is_relative:
            parts = PurePosixPath(stream.path).parts
            if not parts or ".." in parts or parts[0] == "/" or "\\" in stream.path:
                raise SavepointError(
                    f"{self.base}/{METADATA}: the file {stream.path!r} is not in the savepoint"
                )
            return f"{self.base}/{stream.path}"
        for path in (stream.path, _without_scheme(stream.path)):
            for old, new in self._moved.items():
                if path == old or path.startswith(f"{old.rstrip('/')}/"):
                    return new.rstrip("/") + path[len(old.rstrip("/")) :]
        return stream.path

    def name_of(self, stream: StreamHandle) -> str:
        """Return what a message calls a stream."""
        if stream.data is not None:
            return f"{self.base}/{METADATA} (inline)"
        return self.path_of(stream)

    @contextmanager
    def open(self, stream: StreamHandle) -> Iterator[OpenStream]:
        """Open a stream."""
        if stream.data is not None:
            yield OpenStream(stream, None, self.name_of(stream))
            return
        path = self.path_of(stream)
        with _open(path) as file:
            yield OpenStream(stream, file, path)


class OpenStream:
    """A stream that is open."""

    def __init__(self, stream: StreamHandle, file: BinaryIO | None, name: str) -> None:
        self.size = stream.size
        self.name = name
        self._stream = stream
        self._file = file

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from an offset to another; all of them, or SavepointError."""
        if not 0 <= start <= end <= self.size:
            raise self._error(start, f"{end - start} bytes were to follow, of {self.size} in all")
        if self._file is None:
            return (self._stream.data or b"")[start:end]
        if end - start > CHUNK:  # room is made for what is there, not for what was said
            return b"".join(self.chunks(start, end))
        try:
            self._file.seek(self._stream.start + start)
            data = self._file.read(end - start)
        except OSError as error:
            raise self._error(start, str(error)) from None
        if len(data) < end - start:
            raise self._error(start, f"the file ends {end - start - len(data)} bytes too early")
        return data

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from an offset to another, so many at once."""
        for pos in range(start, end, CHUNK):
            yield self.read(pos, min(pos + CHUNK, end))

    def _error(self, offset: int, message: str) -> SavepointError:
        return SavepointError(f"{self.name}, offset {offset}: {message}")


def _without_scheme(path: str) -> str:
    """Return the path of a URL, without what quotes characters in it."""
    scheme, colon, rest = path.partition(":")
    return unquote(f"/{rest.lstrip('/')}") if colon and "/" not in scheme else path


def check_path(name: str, path: object) -> str:
    """Return a path as text, or raise InvalidTypeError with `name`."""
    text = path.__fspath__() if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise InvalidTypeError(f"{name} must be a str or a path, got {show(path)}")
    return text


def local_path(path: str) -> Path | None:
    """Return a path of this machine, None for the URL of another place."""
    if path.startswith("file:"):
        return Path(_without_scheme(path))
    return None if "://" in path else Path(path)


def import_fsspec(path: str) -> ModuleType:
    """Return fsspec, which opens a URL, or raise KeyGroupsError naming the extra."""
    try:
        import fsspec
    except ImportError:
        raise KeyGroupsError(
            f"{path}: a URL is opened with fsspec: pip install 'keygroups[savepoint]'"
        ) from None
    return cast("ModuleType", fsspec)


def _open(path: str) -> BinaryIO:
    """Open a file by its path or URL."""
    local = local_path(path)
    try:
        if local is not None:
            return local.open("rb")
        return cast("BinaryIO", import_fsspec(path).open(path, "rb").open())
    except (OSError, ValueError, ImportError) as error:
        raise file_error(path, "opened", error) from None


def file_error(path: str, verb: str, error: Exception) -> SavepointError:
    """Return the error for a path, which may be any text, and what cannot be done with it."""
    shown = path if path.isprintable() else repr(path)[1:-1]
    reason = " ".join(str(getattr(error, "strerror", None) or error).split())
    return SavepointError(f"{shown[:_SHOWN]}: cannot be {verb}: {reason[:_SHOWN]}")
