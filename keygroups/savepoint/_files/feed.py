"""Bytes that come in chunks; only those that are being read are held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keygroups._serializers.base import TRUNCATED, Read, UnreadableError
from keygroups._serializers.data_input import (
    MOST_REPEATED,
    Cursor,
    ReadingContext,
    check_repeated,
)
from keygroups.errors import SavepointError
from keygroups.savepoint._files.compression import decompress_chunk
from keygroups.savepoint._files.files import CHUNK, OpenStream

_SNAPPY, _PLAIN, _START = 0, 1, 0xFF  # types of chunks
_UNCOUNTED = 1 << 16  # bytes that may be repeated before they are counted
STREAM_START = b"\xff\6\0\0sNaPpY"
"""The first chunk of a framed stream of Snappy."""


class Feed:
    """A window on the bytes of a stream from `start` to `end`: `data`, read up to `pos`."""

    def __init__(self, stream: OpenStream, start: int, end: int, is_compressed: bool) -> None:
        self.data = b""
        self.pos = 0
        self.shared = 0
        """Bytes of each entry that stand in the stream once, before several entries."""
        self._repeated = 0
        self.place = f"{stream.name}, offset "
        """Text that an error has before an offset: the stream's name."""
        self._base = start  # offset of data[0], after decompression if there is any
        if is_compressed:
            self.place += f"{start}, after decompression "
            self._base = 0
            self._chunks = decompressed(stream, start, end)
        else:
            self._chunks = stream.chunks(start, end)
        self._start = self._base

    @property
    def offset(self) -> int:
        """Offset of the next byte: in the stream, or in all that was decompressed from `start`."""
        return self._base + self.pos

    def more(self) -> None:
        """Drop the bytes that were read, and at least double the rest; raise at the end."""
        rest = self.data[self.pos :]
        parts, got = [rest], 0
        for chunk in self._chunks:
            parts.append(chunk)
            got += len(chunk)
            if got >= len(rest):
                break
        if not got:
            raise self.error("the bytes end too early")
        self._base += self.pos
        self.data = b"".join(parts)
        self.pos = 0

    def read_sized(self, read: Read) -> tuple[Any, int]:
        """Return a value, however many chunks it takes, and its size in bytes.

        Raises SavepointError where the bytes are no value, UnreadableError where it takes the
        job's classes.
        """
        while True:
            try:
                value, pos = read(self.data, self.pos)
            except TRUNCATED:
                self.more()
            except UnreadableError:  # The bytes are sound: the caller decides.
                raise
            except ValueError as error:
                raise self.error(str(error)) from None
            else:
                size = pos - self.pos
                self.pos = pos
                return value, size

    def read(self, read: Read) -> Any:
        """Return a value; errors are those of `read_sized`."""
        return self.read_sized(read)[0]

    def repeat(self, size: int, name: object) -> None:
        """Count `size` bytes that stand in the stream once and are handed out once more.

        Raises SavepointError, which calls them `name`, where a small stream would grow too large.
        """
        self._repeated += size
        try:
            check_repeated(self._repeated, self.offset - self._start)
        except ValueError as error:
            raise self.error(
                f"of {name} {error}: take a savepoint in canonical format, which has the key "
                "with each user key"
            ) from None

    def runs(self, count: int, size: int, name: object) -> Iterator[int]:
        """Yield the numbers of entries to read next, `count` in all, each with `size` repeated.

        Raises SavepointError as `repeat` does, before many of them are held: of 1,000 entries
        with 10,000 repeated bytes each it yields 6, 6, ... and 4, and counts each time.
        """
        if size <= MOST_REPEATED:  # An entry has a byte of its own: the bytes stay within bounds.
            yield count
            return
        most = max(1, _UNCOUNTED // size)
        for start in range(0, count, most):
            run = min(most, count - start)
            self.repeat(run * size, name)
            yield run

    def error(self, message: str) -> SavepointError:
        """Return a SavepointError that begins with the stream's name and the offset."""
        return SavepointError(f"{self.place}{self.offset}: {message}")


class HeldFeed(Feed):
    """A feed of bytes that are there: of a place in a stream, which errors name."""

    def __init__(self, data: bytes, place: str, offset: int) -> None:
        self.data, self.pos = data, 0
        self.place = place
        self.shared = self._repeated = 0
        self._base = self._start = offset
        self._chunks = iter(())


def header_cursor(stream: OpenStream, size: int, context: ReadingContext) -> Cursor:
    """Return a cursor on the first `size` bytes of a stream; long ones come as they are read."""
    if size > CHUNK:
        return _StreamCursor(stream, size, context)
    return Cursor(stream.read(0, size), stream.name, context=context)


class _StreamCursor(Cursor):
    def __init__(self, stream: OpenStream, size: int, context: ReadingContext) -> None:
        super().__init__(b"", stream.name, context=context)
        self._stream = stream
        self._end = size

    def skip(self, count: int) -> int:
        """Pass over `count` bytes, and fetch those that `data` does not have yet."""
        got = len(self.data)
        if got < self.pos + count <= self._end:
            end = min(max(self.pos + count, 2 * got, CHUNK), self._end)
            self.data += self._stream.read(got, end)
        return super().skip(count)


def decompressed(stream: OpenStream, start: int, end: int) -> Iterator[bytes]:
    """Yield the chunks of framed streams of Snappy that follow one another.

    Flink: SnappyStreamCompressionDecorator. Snappy: framing_format.txt.
    """
    pos = start
    while pos < end:
        chunk = stream.read(pos, min(pos + 4, end))
        size = int.from_bytes(chunk[1:], "little")
        if pos + 4 + size > end or chunk[0] not in (_SNAPPY, _PLAIN, _START):
            raise SavepointError(f"{stream.name}, offset {pos}: this is no chunk of Snappy")
        chunk += stream.read(pos + 4, pos + 4 + size)
        if chunk[0] != _START:
            yield decompress_chunk(chunk, stream.name, pos)
        pos += len(chunk)
