"""Opens the bytes of a savepoint: `_metadata`, local files, or any that fsspec opens.

The paths in `_metadata` are whatever its writer wanted. Files are opened only in the savepoint's
own folder; for a checkpoint `chk-N` in `shared`, `taskowned` and the checkpoints beside it; and
where the caller said that files are.
"""

from __future__ import annotations

import copy
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote

from keygroups._checks import check_str, show
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    printable,
)
from keygroups.progress import Meter
from keygroups.savepoint._files.store_file import Requests, Span, StoreFile
from keygroups.savepoint._files.stores import filesystem_of
from keygroups.savepoint._metadata.handles import StreamHandle

METADATA = "_metadata"
_SHOWN = 500  # characters of a path or a reason in a message
CHUNK = 1 << 18
"""Bytes of a stream that are held at once, unless one entry is longer."""

# A path of this machine, also as a file: URL without a host; or the URL of another place.
_ABSOLUTE = re.compile(r"/|file:/(?:/{2,})?(?!/)|(?!(?:file|local):)[A-Za-z][A-Za-z0-9+.-]*://")
_CHECKPOINT = re.compile(r"(.*[^/:])?/chk-[0-9]+", re.DOTALL)  # in the folder of its job
_OF_JOB = re.compile(r"/(?:shared|taskowned|chk-[0-9]+)/")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")  # a path on Windows begins with one
# A pipe or a link may replace the file just now: opening neither waits nor follows.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK"))

Resolve = Callable[[Path], str]
Planned = tuple[StreamHandle, Iterable[Span]]
"""A stream that will be opened, and the spans that will be read of it, in that order."""
FolderPath = tuple[str, str]
"""A folder that may be read, and a path in it, which begins with a slash; "" is the folder."""


class Elsewhere(NamedTuple):
    """Folders that are not where `_metadata` says: the places of those that were found elsewhere.

    `lost` are the others, and `advice` is the `moved` that errors propose for them.
    """

    found: Mapping[str, FolderPath]
    lost: frozenset[str]
    advice: str


NOWHERE = Elsewhere({}, frozenset(), "")


class Files:
    """Opens the streams of one savepoint; it holds no file open and may be pickled.

    `moved` maps what paths of files start with to where these are now; `allow` has the folders
    and files, as paths or URLs, that may be opened besides; `has_files` tells whether it has any.
    `elsewhere` has the folders that are not where `_metadata` says.
    """

    _meter: Meter | None = None

    def __init__(self, path: str, moved: Mapping[str, str], allow: Iterable[str] = ()) -> None:
        """Take the folder of `_metadata`, that file, or the URL of either."""
        folder, slash, name = path.rpartition("/")
        if name == METADATA:
            path = folder
        self.base = path.rstrip("/") or slash or "."
        self._moved = dict(moved)
        allowed = [*allow]
        self.has_files = bool(allowed)
        self._allowed = (*self._moved.values(), *allowed)
        self.elsewhere = NOWHERE  # until `find_files` has looked

    def __repr__(self) -> str:
        return f"<Files {printable(self.base)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.base)

    def metered(self, meter: Meter | None) -> Files:
        """Return Files for the same streams that count in the meter what is read."""
        if meter is None:
            return self
        files = copy.copy(self)
        files._meter = meter
        return files

    def __getstate__(self) -> dict[str, Any]:
        # The process that unpickles them may have another working directory.
        return {
            **vars(self),
            "base": absolute_path(self.base),
            "_moved": {old: absolute_path(new) for old, new in self._moved.items()},
            "_allowed": tuple(map(absolute_path, self._allowed)),
        }

    def metadata(self) -> tuple[bytes, str]:
        """Return the bytes of `_metadata`, and its path."""
        path = f"{self.base}/{METADATA}"
        return read_whole(path), path

    def path_of(self, stream: StreamHandle) -> str:
        """Return the path or URL of a stream's file; SavepointError for one that may not be read.

        No disk or host is asked for that.
        """
        return joined(*self._place(stream))

    def name_of(self, stream: StreamHandle) -> str:
        """Return the name of a stream, for messages."""
        if stream.data is not None:
            return f"{self.base}/{METADATA} (inline)"
        return self.path_of(stream)

    @contextmanager
    def open(self, stream: StreamHandle) -> Iterator[OpenStream]:
        """Open a stream; SavepointError, before it is opened, for a file that may not be."""
        if stream.data is not None:
            yield OpenStream(stream, None, self.name_of(stream), self._meter)
            return
        root, rest = self._place(stream)
        name = joined(root, rest)
        folder = local_path(root)
        if folder is None:
            opened = self._at_url(stream, name)
        else:
            with self._advising(stream):
                opened = _opened(name, self._real(stream, folder, rest))
        with opened as file:
            with errors_of(name):
                size = _size_of(file)
            end = stream.start + stream.file_size
            if size is not None and (size < end if stream.is_segment else size != end):
                start = f" from {stream.start} on" if stream.is_segment else ""
                raise SavepointError(
                    f"{name}: the file has {size} bytes, its handle says {stream.file_size}{start}"
                )
            yield OpenStream(stream, file, name, self._meter)

    @property
    def has_plan(self) -> bool:
        """Whether `ahead` is of no use: all files are local, or a plan is there."""
        return all(local_path(place) is not None for place in (self.base, *self._allowed))

    @contextmanager
    def ahead(self, plan: Iterable[Planned]) -> Iterator[Files]:
        """Yield Files for the same streams, some of which will be opened as planned.

        Those at a URL are asked for before they are opened, as far as there is room.
        """
        if self.has_plan:
            yield self
            return
        reader = _Reader(self, plan)
        try:
            yield reader
        finally:
            reader.requests.close()

    def _at_url(self, stream: StreamHandle, name: str) -> BinaryIO | StoreFile:
        return _Reader(self)._at_url(stream, name)

    def _place(self, stream: StreamHandle) -> tuple[str, str]:
        """Return the FolderPath of a stream's file; SavepointError if nobody may read it."""
        if stream.is_relative:
            root, rest = self.base, f"/{stream.path}"
        else:
            path = stream.path
            root, rest = moved_path(path, self._moved) or self._found(path) or self._named(stream)
        if not is_plain(rest, local_path(root) is None):
            raise self._error(stream, "")
        return root, rest

    @property
    def has_places(self) -> bool:
        """Whether the caller has passed places, in `moved` or `allow`."""
        return bool(self._allowed)

    def is_moved(self, stream: StreamHandle) -> bool:
        """Tell whether `moved` has a place for a file."""
        return moved_path(stream.path, self._moved) is not None

    def is_path(self, stream: StreamHandle) -> bool:
        """Tell whether a stream's path is absolute and plain, whether it may be read or not."""
        path = stream.path
        has_name = is_plain(f"/{path.rpartition('/')[2]}", local_path(path) is None)
        return bool(_ABSOLUTE.match(path)) and "::" not in path and has_name

    def own_folders(self) -> Iterator[FolderPath]:
        """Yield the savepoint's own folder; for a checkpoint its job's `shared` and `taskowned`.

        They are absolute, as another process may have another working directory.
        """
        is_url = local_path(self.base) is None
        yield self.base if is_url else _root(self.base, os.path.abspath), ""
        for resolve in (None,) if is_url else (os.path.abspath, os.path.realpath):
            checkpoint = _CHECKPOINT.fullmatch(_root(self.base, resolve))
            if checkpoint:
                yield from ((checkpoint[1] or "/", f"/{name}") for name in ("shared", "taskowned"))
                return

    def _found(self, path: str) -> FolderPath | None:
        folder, _, name = path.rpartition("/")
        place = self.elsewhere.found.get(folder)
        return None if place is None else (place[0], f"{place[1]}/{name}")

    @contextmanager
    def _advising(self, stream: StreamHandle) -> Iterator[None]:
        """Add to an error the `moved` to pass, if the folder of the file was not found."""
        try:
            yield
        except SavepointError as error:
            if stream.path.rpartition("/")[0] not in self.elsewhere.lost:
                raise
            advice = self.elsewhere.advice
            raise SavepointError(f"{error}: pass {advice} to say where it is now") from None

    def _named(self, stream: StreamHandle) -> tuple[str, str]:
        if not _ABSOLUTE.match(stream.path) or "::" in stream.path:
            raise self._error(stream, "")
        local = local_path(stream.path)
        path = stream.path if local is None else local.as_posix()
        resolves = (None,) if local is None else (os.path.abspath, os.path.realpath)
        for resolve in resolves:
            root = self._root_of(path, resolve)
            if root:
                return root, path[len(root.rstrip("/")) :]
        raise self._outside(stream, path)

    def _real(self, stream: StreamHandle, folder: Path, rest: str) -> str:
        """Return the path of a local file in a folder; a link there may lead out of it."""
        below = folder
        for name in rest.split("/")[1:]:
            below /= name
            if os.path.islink(below):  # noqa: PTH114  # the method raises for a name too long
                break
        else:  # No link is on the way, as there is none in what Flink writes.
            return str(below)
        path = _resolved(folder / rest[1:])
        if not self._root_of(path, os.path.realpath):
            # Whoever made the link chose the path: nobody is advised to allow it.
            raise self._error(stream, f": a link leads to {path[:_SHOWN]!r}")
        return path

    def _root_of(self, path: str, resolve: Resolve | None) -> str:
        """Return the folder that may be read and holds a path, "" if none does.

        Folders are compared as local paths that `resolve` has made absolute, without it as URLs.
        """
        base = _root(self.base, resolve)
        checkpoint = _CHECKPOINT.fullmatch(base)
        if checkpoint:
            job = checkpoint[1] or ""
            if path.startswith(job) and _OF_JOB.match(path, len(job)):
                return job or "/"
        roots = chain([base], (_root(folder, resolve) for folder in self._allowed))
        return next((root for root in roots if root and _is_in(path, root)), "")

    def _outside(self, stream: StreamHandle, path: str) -> SavepointError:
        """Return the error for a file that the caller may allow; `path` is where it is."""
        folder, _, name = path.rpartition("/")
        if not is_plain(f"/{name}", "://" in path):
            return self._error(stream, "")
        prefix = folder if folder.strip("/") and not folder.endswith("/") else path
        is_lost = stream.path.rpartition("/")[0] in self.elsewhere.lost
        such_as = f", as in {self.elsewhere.advice}" if is_lost else ""
        return self._error(
            stream,
            f": pass allow=[{prefix[:_SHOWN]!r}] if it is to be read there, or moved to say where "
            f"it is now{such_as}",
        )

    def _error(self, stream: StreamHandle, remedy: str) -> SavepointError:
        shown = stream.path[:_SHOWN]
        return SavepointError(
            f"{self.base}/{METADATA}: the file {shown!r} is not in the savepoint{remedy}"
        )


class _Reader(Files):
    """Files of one reader, which asks for the streams of its plan ahead."""

    def __init__(self, files: Files, plan: Iterable[Planned] = ()) -> None:
        vars(self).update(vars(files))
        self._plan = plan
        folder = ""
        if local_path(self.base) is None:
            with errors_of(self.base):
                folder = filesystem_of(self.base)[1].rstrip("/")
        self.requests = Requests(folder, self._planned)

    @property
    def has_plan(self) -> bool:
        """True: it has one."""
        return True

    def _planned(self, requests: Requests) -> Iterator[StoreFile]:
        for stream, spans in self._plan:
            with suppress(KeyGroupsError):  # Opening the stream raises it again.
                if stream.data is None and local_path(self._place(stream)[0]) is None:
                    with errors_of(name := self.path_of(stream)):
                        filesystem, path = filesystem_of(name)
                        if _has_ranges(filesystem):
                            yield StoreFile(requests, filesystem, path, stream, spans)

    def _at_url(self, stream: StreamHandle, name: str) -> BinaryIO | StoreFile:
        with errors_of(name):
            file = self.requests.take(stream)
            if file is None:
                filesystem, path = filesystem_of(name)
                if not _has_ranges(filesystem):
                    return cast("BinaryIO", filesystem.open(path, "rb"))
                file = StoreFile(self.requests, filesystem, path, stream)
                file.begin()
        self.requests.fill(file)
        return file


class OpenStream:
    """A stream that is open."""

    def __init__(
        self,
        stream: StreamHandle,
        file: BinaryIO | StoreFile | None,
        name: str,
        meter: Meter | None = None,
    ) -> None:
        self.size = stream.file_size
        self.name = name
        self._stream = stream
        self._file = file
        self._meter = meter

    def read(self, start: int, end: int) -> bytes:
        """Return all bytes from offset `start` to `end` of the stream, or raise SavepointError."""
        if not 0 <= start <= end <= self.size:
            raise self._error(start, f"{end - start} bytes were to follow, of {self.size} in all")
        if end - start > CHUNK and self._file is not None:
            # Chunks make room for the bytes that come: the size may be a lie.
            return b"".join(self.chunks(start, end))
        if self._meter is not None:
            self._meter.add(end - start)
        if self._file is None:
            return (self._stream.data or b"")[start:end]
        try:
            self._file.seek(self._stream.start + start)
            data = self._file.read(end - start)
        except Exception as error:  # Clients of stores raise errors of their own.
            raise self._error(start, _reason(error)) from None
        if len(data) < end - start:
            raise self._error(start, f"the file ends {end - start - len(data)} bytes too early")
        return data

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`, `CHUNK` at once."""
        if end - start > CHUNK:
            self.ahead(start, end)
        for pos in range(start, end, CHUNK):
            yield self.read(pos, min(pos + CHUNK, end))

    def ahead(self, start: int, end: int) -> None:
        """Ask a store for bytes that will be read in order; other files need no asking."""
        if isinstance(self._file, StoreFile):
            begin = self._stream.start
            self._file.ahead(begin + start, begin + min(end, self.size))

    @property
    def window(self) -> int:
        """Bytes to ask for ahead at once."""
        return self._file.window if isinstance(self._file, StoreFile) else CHUNK

    @property
    def has_room(self) -> bool:
        """Whether more windows than the next one may be asked for ahead."""
        return isinstance(self._file, StoreFile) and self._file.has_room

    def _error(self, offset: int, message: str) -> SavepointError:
        return SavepointError(f"{self.name}, offset {offset}: {message}")


def moved_path(path: str, moved: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the folder that the start of a path is moved to, and the rest; None if it is not."""
    for spelling in (path, _without_scheme(path)):
        for old, new in moved.items():
            start = old.rstrip("/")
            if spelling == old or spelling.startswith(f"{start}/"):
                return new, spelling[len(start) :]
    return None


def path_in_metadata(path: str) -> str:
    """Return the path of a folder as `_metadata` has it: a URL without a slash at the end."""
    local = local_path(path)
    return path.rstrip("/") if local is None else f"file:{local.absolute().as_posix()}"


def job_folder(path: str) -> str | None:
    """Return the folder of the job whose checkpoint, shared or other file has a path, if one has.

    Flink: AbstractFsCheckpointStorageAccess, for the names in it.
    """
    places = [*_OF_JOB.finditer(path)]
    return path[: places[-1].start()] if places else None


def _without_scheme(path: str) -> str:
    """Return the path of a URL, its %-escapes decoded; a path as it is."""
    scheme, colon, rest = path.partition(":")
    return unquote(f"/{rest.lstrip('/')}") if colon and "/" not in scheme else path


def joined(root: str, rest: str) -> str:
    return root.rstrip("/") + rest


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(joined(root, "/"))


def is_plain(rest: str, is_url: bool) -> bool:
    """Tell whether every system takes a path in a folder for one that leads down."""
    if "::" in rest or {"", ".", ".."}.intersection(rest.split("/")[1:]):
        return False
    if is_url and not rest.isprintable():
        return False
    return not set("\\\0%?#" if is_url else "\\\0").intersection(rest)


def _root(path: str, resolve: Resolve | None) -> str:
    """Return a folder as a local path, or without `resolve` as a URL; "" for the other kind."""
    local = local_path(path)
    if resolve is None:
        return path.rstrip("/") if local is None else ""
    return "" if local is None else _resolved(local, resolve)


def _resolved(path: Path, resolve: Resolve = os.path.realpath) -> str:
    try:
        return Path(resolve(path)).as_posix()
    except (OSError, ValueError) as error:
        raise file_error(str(path), "opened", error) from None


def check_place(name: str, path: object) -> str:
    """Return a path or URL as text; refuse one such as "s3://", which could allow everything."""
    text = check_path(name, path)
    if not text or ("://" in text and text.rstrip("/").endswith(":")):
        raise InvalidValueError(f"{name} must name a folder or file, got {show(text)}")
    return text


def check_moved(moved: Mapping[str, str] | None) -> dict[str, str]:
    """Return `moved` as text: the starts of paths, each with its place now."""
    if not isinstance(moved, Mapping) and moved is not None:
        raise InvalidTypeError(f"moved must be a mapping of paths, got {show(moved)}")
    return {
        _as_java_has_it(check_str("path in moved", old)): check_place("path in moved", new)
        for old, new in (moved or {}).items()
    }


def _as_java_has_it(path: str) -> str:
    r"""Return a path of a drive of Windows such as C:\flink as /C:/flink, others as they are.

    Java: File.toURI, by which Flink's Path has the former as file:/C:/flink.
    """
    return f"/{path}".replace("\\", "/") if _DRIVE.match(path) else path


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
    if path.startswith("local://"):  # fsspec's own scheme, without %-escapes
        return Path(path.removeprefix("local://"))
    return None if "://" in path else Path(path)


def read_whole(path: str) -> bytes:
    """Return the bytes of a file, by its path or URL; SavepointError where it cannot be opened."""
    local = local_path(path)
    if local is None:
        with errors_of(path):
            filesystem, inner = filesystem_of(path)
            return bytes(filesystem.cat_file(inner))
    with _opened(path, _resolved(local)) as file:
        return file.read()


def absolute_path(path: str) -> str:
    """Return a local path made absolute, and the URL of another place as it is."""
    local = local_path(path)
    return path if local is None or local.is_absolute() else str(local.absolute())


def _has_ranges(filesystem: Any) -> bool:
    """Tell whether files are read by ranges, side by side; a server of HTTP may lack ranges."""
    return bool(filesystem.async_impl) and not is_server(filesystem)


def is_server(filesystem: Any) -> bool:
    """Tell whether a file system is a server of HTTP, which does not list its files."""
    protocol = filesystem.protocol
    return "http" in ((protocol,) if isinstance(protocol, str) else protocol)


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Turn all that a client raises for a file into SavepointError: it cannot be opened."""
    try:
        yield
    except KeyGroupsError:
        raise
    except Exception as error:
        raise file_error(name, "opened", error) from None


def _opened(name: str, path: str) -> BinaryIO:
    """Open a local regular file, which an error calls `name`.

    A pipe or device is refused unopened, or closed if it replaced the file a moment ago.
    """
    with errors_of(name), ExitStack() as opened:
        _check_regular(os.lstat(path))
        file = opened.enter_context(open(path, "rb", opener=_opener))
        _check_regular(os.fstat(file.fileno()))
        opened.pop_all()
        return file


def _size_of(file: BinaryIO | StoreFile) -> int | None:
    """Return the size of an open file in bytes, None where its store does not tell."""
    if not isinstance(file, StoreFile):
        with suppress(OSError, AttributeError):
            return os.fstat(file.fileno()).st_size
    size = getattr(file, "size", None)
    return size if isinstance(size, int) else None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


def _check_regular(info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise OSError("it is no regular file")


def file_error(path: str, verb: str, error: Exception) -> SavepointError:
    """Return the SavepointError for a path, which may be any text, that cannot be `verb`."""
    return SavepointError(f"{printable(path)[:_SHOWN]}: cannot be {verb}: {_reason(error)}")


def _reason(error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error) or type(error).__name__
    return printable(" ".join(text.split()))[:_SHOWN]
