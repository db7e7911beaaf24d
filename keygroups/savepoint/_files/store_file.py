"""Files of a store behind a network: ranges of their bytes, asked for ahead and side by side.

An answer takes a while, however short it is. So ranges are asked for before they are read, by
fsspec's own loop; their bytes are bounded for all files together. Nothing is asked for twice:
retries are the client's.
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
"""Bytes that are asked for, or held, before they are read."""
REQUEST = 2 << 20
"""Bytes that the first request for bytes that follow one another asks for at most."""
_LARGEST = 8 << 20  # bytes of a later one: each takes twice as many as that before it
_LEAST = 128 << 10  # bytes that a request counts at least: 256 requests fill AHEAD
_SMALL = 64 << 10  # bytes of a window where there is little room
_GAP = 64 << 10  # bytes between two ranges up to which one request asks for both
_LISTED = 32  # files of the savepoint's folder whose sizes are worth a listing

T = TypeVar("T")
Span = tuple[int, int]
"""Start and end offset of bytes in a file, or in a stream in it."""


class Requests:
    """Requests of one reader to a store; `free` is how many bytes more may be asked for ahead.

    `folder` is the savepoint's: nobody else's files are in it, so it may be listed. `planned`
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
        """Cancel the requests of planned files that nobody has opened."""
        for file in self._begun:
            file.close()

    def take(self, stream: StreamHandle) -> StoreFile | None:
        """Return the file of a stream if it is planned next, and close those before it."""
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
        """Ask for the next spans of a file that is being read, then for those of planned files."""
        self._ask(file)
        while self.free > 0:
            if self._begun:
                self._ask(self._begun[-1])
                if self._begun[-1].next_cost:  # It does not fit.
                    break
            if not self._begin_next():
                break

    def _ask(self, file: StoreFile) -> None:
        """Ask for the next spans of a file that there is room for."""
        while 0 < file.next_cost <= self.free:
            file.ask_next()

    def _begin_next(self) -> bool:
        file = next(self._planned, None)
        if file is None:
            return False
        file.begin()
        self._begun.append(file)
        return True

    def ask_size(self, filesystem: Any, path: str) -> Future[Any]:
        """Return a future of the size of a file, or of all sizes in its folder by their paths."""
        if path.rpartition("/")[0] == self._folder:
            self._asked_sizes += 1
            if self._asked_sizes == _LISTED:
                self._listing = _asked(filesystem, _sizes(filesystem, self._folder))
            if self._listing is not None and not _has_failed(self._listing):
                return self._listing
        return _asked(filesystem, filesystem._size(path))


class StoreFile:
    """The file of a stream, which is read by ranges.

    `spans` of the stream will be read, in that order, and are asked for ahead; other bytes may be
    read too, by a request each.
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
        self._last: _Piece | None = None  # the piece with the file's end, if it is the first
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
        """Cancel the requests whose bytes were not read."""
        while self._pieces:
            self._drop()
        if self._last is not None:
            self._free(self._last)
            self._last = None
        self._spans, self._next = iter(()), None

    def begin(self) -> None:
        """Ask for the first span, and for the size unless the span shows it.

        A span that ends with the file does: one byte beyond is asked for, and where the answer
        lacks it, the file ends there.
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
        """Size of the file in bytes, None where its store does not tell.

        A file that is not there raises the client's error.
        """
        # A listing may be stale or forbidden, and a store may refuse a range of a file that is
        # too short: only the answer for the file itself proves that its size is another.
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
        answer: dict[str, int | None] | int | None = self._size.result()
        return answer.get(self._path, -1) if isinstance(answer, dict) else answer

    @property
    def window(self) -> int:
        """Bytes for the next request: a quarter of the room, but 64 KiB to 2 MiB."""
        return min(REQUEST, max(_SMALL, self._requests.free // 4))

    @property
    def has_room(self) -> bool:
        """Whether more may be asked for ahead."""
        return self._requests.free > 0

    def ahead(self, start: int, end: int) -> None:
        """Ask for the first of some bytes that will be read in order, unless that is done."""
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
        """Let the next `read` start at an offset of the file."""
        self._pos = pos

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes, fewer where the file ends."""
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
        """Return the piece with the byte at an offset, or None, and drop the pieces before it."""
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

    @property
    def next_cost(self) -> int:
        """The room that the next span takes, 0 if there is none."""
        return 0 if self._next is None else _cost(*self._next)

    def ask_next(self) -> None:
        """Ask for the next span, if there is one."""
        if self._next is not None:
            piece = self._ask(*self._next)
            self._next = next(self._spans, None)
            self._pieces.append(piece)
            self._requests.free -= piece.cost

    def _ask(self, start: int, end: int, beyond: int = 0) -> _Piece:
        asked = self._filesystem._cat_file(self._path, start=start, end=end + beyond)
        return _Piece(start, end, beyond, _asked(self._filesystem, asked))

    def _drop(self) -> None:
        self._free(self._pieces.popleft())

    def _free(self, piece: _Piece) -> None:
        piece.future.cancel()
        self._requests.free += piece.cost


class _Piece:
    """A range of a file that one request asks for: `start` to `end`, and some bytes beyond."""

    def __init__(self, start: int, end: int, beyond: int, future: Future[bytes]) -> None:
        self.start = start
        self.end = end
        self.cost = _cost(start, end)
        self.future = future
        self._most = end + beyond - start

    def has(self, offset: int) -> bool:
        """Tell whether the byte at an offset of the file is in the range."""
        return self.start <= offset < self.end

    def data(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` that are in the range, once they have come."""
        data = self.future.result()
        if len(data) > self._most:
            raise OSError(f"the store gave {len(data)} bytes where {self._most} were asked for")
        return data[start - self.start : min(end, self.end) - self.start]


def _cost(start: int, end: int) -> int:
    return max(end - start, _LEAST)


def _asked(filesystem: Any, request: Coroutine[Any, Any, T]) -> Future[T]:
    return asyncio.run_coroutine_threadsafe(request, filesystem.loop)


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and future.exception() is not None


async def _sizes(filesystem: Any, folder: str) -> dict[str, int | None]:
    # fsspec caches listings: an old one is of no use here, and this one of none to others later.
    filesystem.invalidate_cache(folder)
    listed = await filesystem._ls(folder, detail=True)
    filesystem.invalidate_cache(folder)
    return {info["name"]: info.get("size") for info in listed}


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans that follow one another closely as one, but none larger than a request.

    (0, 10), (20, 30) become (0, 30), as reading the 10 bytes between takes less time than another
    request; (0, 3 MiB) becomes (0, 2 MiB), (2 MiB, 3 MiB). Of many bytes the first, which somebody
    waits for, come in a small request, and the others in few, as each takes a store some work.
    """
    first = last = 0
    for start, end in spans:
        if first <= start <= last + _GAP and first < last:
            last = max(last, end)
        else:
            yield from _cut(first, last)
            first, last = start, end
    yield from _cut(first, last)


def _cut(start: int, end: int) -> Iterator[Span]:
    size = REQUEST
    while start < end:
        yield start, min(start + size, end)
        start += size
        size = min(2 * size, _LARGEST)
