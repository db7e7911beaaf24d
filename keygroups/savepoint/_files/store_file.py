"""Files of a store behind a network: ranges of their bytes, asked for ahead and side by side.

An answer takes a while, however short it is. So what will be read is asked for before it is, by
fsspec's own loop; how many bytes that are does not depend on how many files there are. Nothing is
asked for twice: retries are the client's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
from types import TracebackType
from typing import Any, TypeVar

from keygroups.savepoint._metadata.handles import StreamHandle

AHEAD = 32 << 20
"""How many bytes are asked for, or held, before they are read."""
REQUEST = 2 << 20
"""How many bytes one request asks for at most."""
_LEAST = 128 << 10  # bytes that a request counts at least, which bounds how many there are at once
_SMALL = 64 << 10  # bytes of a window where there is no room
_GAP = 64 << 10  # bytes between two ranges that are read too, rather than asked around
_LISTED = 32  # files of one folder, from which on it is listed for their sizes

T = TypeVar("T")
Span = tuple[int, int]
"""Where bytes of a file, or of a stream in it, start and end."""


class Requests:
    """What one reader has asked a store for; `free` is how many bytes more may be asked ahead for.

    `folder` is that of the savepoint: it has its own files alone, and so may be listed. `planned`
    makes the files that will be opened, in that order.
    """

    def __init__(
        self, folder: str = "", planned: Callable[[Requests], Iterator[StoreFile]] | None = None
    ) -> None:
        self.free = AHEAD
        self._planned = iter(()) if planned is None else planned(self)
        self._begun: deque[StoreFile] = deque()
        self._folder = folder
        self._asked_sizes = 0
        self._listing: Future[dict[str, int | None]] | None = None

    def close(self) -> None:
        """Forget what nobody has read."""
        for file in self._begun:
            file.close()

    def take(self, stream: StreamHandle) -> StoreFile | None:
        """Return the file of a stream if it is planned; those before it are not taken any more."""
        while len(self._begun) < 2 and all(file.stream != stream for file in self._begun):
            if not self._begin_next():
                break
        for number, file in enumerate(self._begun):
            if file.stream == stream:
                for _ in range(number):
                    self._begun.popleft().close()
                return self._begun.popleft()
        return None

    def fill(self, file: StoreFile) -> None:
        """Ask ahead for what a file that is being read has, then for that of the planned ones."""
        while self.free > 0 and file.ask_next():
            pass
        while self.free > 0:
            if not (self._begun and self._begun[-1].ask_next()) and not self._begin_next():
                break

    def _begin_next(self) -> bool:
        file = next(self._planned, None)
        if file is None:
            return False
        file.begin()
        self._begun.append(file)
        return True

    def ask_size(self, filesystem: Any, path: str) -> Future[Any]:
        """Ask for the size of a file, or for those of all in its folder, by their paths."""
        if path.rpartition("/")[0] == self._folder:
            self._asked_sizes += 1
            if self._asked_sizes == _LISTED:
                self._listing = _asked(filesystem, _sizes(filesystem, self._folder))
            if self._listing is not None and not _has_failed(self._listing):
                return self._listing
        return _asked(filesystem, filesystem._size(path))


class StoreFile:
    """The file of a stream, which is read by ranges.

    `spans` are those of the stream that will be read, in that order: others may be read too, by
    a request each.
    """

    def __init__(
        self,
        requests: Requests,
        filesystem: Any,
        path: str,
        stream: StreamHandle,
        spans: Iterable[Span] = (),
    ) -> None:
        self.stream = stream
        self._requests = requests
        self._filesystem = filesystem
        self._path = path
        self._end = stream.start + stream.file_size
        self._is_exact = not stream.is_segment
        self._pieces: deque[_Piece] = deque()
        self._last: _Piece | None = None  # with the end of the file, if it was the first
        self._spans = _joined(
            (stream.start + max(start, 0), min(stream.start + end, self._end))
            for start, end in spans
        )
        self._next: Span | None = None
        self._size: Future[Any] | None = None
        self._pos = 0

    def __enter__(self) -> StoreFile:
        return self

    def __exit__(
        self,
        cls: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was asked for and not read."""
        while self._pieces:
            self._drop()
        if self._last is not None:
            self._free(self._last)
            self._last = None
        self._spans, self._next = iter(()), None

    def begin(self) -> None:
        """Ask for the first span, and for the size unless the span shows it.

        It does where it ends with the file: then one byte more is asked for, which is not there.
        """
        self._next = next(self._spans, None)
        if self._is_exact and self._next is not None and self._next[1] == self._end:
            self._last = self._ask(*self._next, beyond=1)
            self._requests.free -= self._last.cost
            self._next = next(self._spans, None)
        else:
            self._size = self._requests.ask_size(self._filesystem, self._path)
            self.ask_next()

    @property
    def size(self) -> int | None:
        """How many bytes the file has, None where its store does not tell.

        Raises what the client raises for a file that is not there.
        """
        # A listing may be of before, or forbidden; a range of a file that ends may be an error.
        with suppress(Exception):
            size = self._shown_size()
            if size is None or (size == self._end if self._is_exact else size >= self._end):
                return size
        self._filesystem.invalidate_cache(self._path)
        asked: int | None = _asked(self._filesystem, self._filesystem._size(self._path)).result()
        return asked

    def _shown_size(self) -> int | None:
        if self._last is not None:
            return self._last.start + len(self._last.future.result())
        assert self._size is not None
        said: dict[str, int | None] | int | None = self._size.result()
        return said.get(self._path, -1) if isinstance(said, dict) else said

    @property
    def window(self) -> int:
        """How many bytes to ask for at once now."""
        return min(REQUEST, max(_SMALL, self._requests.free // 4))

    @property
    def has_room(self) -> bool:
        """Whether more may be asked for ahead."""
        return self._requests.free > 0

    def ahead(self, start: int, end: int) -> None:
        """Ask for bytes that will be read in order, of many for the first ones, if nobody has."""
        if self._last is not None and self._last.has(start):
            return
        if any(piece.has(start) for piece in self._pieces):
            return
        if self._next is None or not self._next[0] <= start < self._next[1]:
            following = () if self._next is None else (self._next,)
            self._spans = chain(_joined([(start, end)]), following, self._spans)
            self._next = next(self._spans, None)
        self.ask_next()

    def seek(self, pos: int) -> None:
        """Go to an offset."""
        self._pos = pos

    def read(self, count: int) -> bytes:
        """Read so many bytes, fewer where the file ends."""
        pos, end = self._pos, self._pos + count
        parts = []
        while pos < end:
            piece = self._piece_at(pos) or self._ask(pos, end)
            data = piece.data(pos, end)
            if not data:
                break
            parts.append(data)
            pos += len(data)
        self._pos = pos
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _piece_at(self, pos: int) -> _Piece | None:
        """Return what was asked for with the byte at an offset, and drop what was before that."""
        if self._last is not None and self._last.has(pos):
            return self._last
        while True:
            for number, piece in enumerate(self._pieces):
                if piece.has(pos):
                    for _ in range(number):
                        self._drop()
                    if number:
                        self._requests.fill(self)
                    return piece
            while self._next is not None and self._next[1] <= pos:
                self._next = next(self._spans, None)
            if self._next is None or self._next[0] > pos:
                return None
            self.ask_next()

    def ask_next(self) -> bool:
        """Ask for the next span; False if there is none."""
        if self._next is None:
            return False
        piece = self._ask(*self._next)
        self._next = next(self._spans, None)
        self._pieces.append(piece)
        self._requests.free -= piece.cost
        return True

    def _ask(self, start: int, end: int, beyond: int = 0) -> _Piece:
        asked = self._filesystem._cat_file(self._path, start=start, end=end + beyond)
        return _Piece(start, end, beyond, _asked(self._filesystem, asked))

    def _drop(self) -> None:
        self._free(self._pieces.popleft())

    def _free(self, piece: _Piece) -> None:
        piece.future.cancel()
        self._requests.free += piece.cost


class _Piece:
    """What one request asks for: the bytes from `start` to `end`, and some beyond."""

    def __init__(self, start: int, end: int, beyond: int, future: Future[bytes]) -> None:
        self.start = start
        self.end = end
        self.cost = max(end - start, _LEAST)
        self.future = future
        self._most = end + beyond - start

    def has(self, offset: int) -> bool:
        """Tell whether the byte at an offset is in it."""
        return self.start <= offset < self.end

    def data(self, start: int, end: int) -> bytes:
        """Return the bytes from an offset to another that are in it."""
        data = self.future.result()
        if len(data) > self._most:
            raise OSError(f"the store gave {len(data)} bytes where {self._most} were asked for")
        return data[start - self.start : min(end, self.end) - self.start]


def _asked(filesystem: Any, request: Coroutine[Any, Any, T]) -> Future[T]:
    return asyncio.run_coroutine_threadsafe(request, filesystem.loop)


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and future.exception() is not None


async def _sizes(filesystem: Any, folder: str) -> dict[str, int | None]:
    # As the folder is now; and nobody is to be told later that it is still so.
    filesystem.invalidate_cache(folder)
    listed = await filesystem._ls(folder, detail=True)
    filesystem.invalidate_cache(folder)
    return {info["name"]: info.get("size") for info in listed}


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans that follow one another closely as one, but none larger than a request."""
    first = last = 0
    for start, end in spans:
        if first <= start <= last + _GAP and first < last:
            last = max(last, end)
        else:
            yield from _cut(first, last)
            first, last = start, end
    yield from _cut(first, last)


def _cut(start: int, end: int) -> Iterator[Span]:
    for pos in range(start, end, REQUEST):
        yield pos, min(pos + REQUEST, end)
