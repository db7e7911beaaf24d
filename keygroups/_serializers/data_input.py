"""A position in bytes from which the structures of `_metadata` and of headers are read."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keygroups.errors import SavepointError

_u16 = struct.Struct(">H").unpack_from
_i32 = struct.Struct(">i").unpack_from
_i64 = struct.Struct(">q").unpack_from

MOST_REPEATED = 256
"""The bytes that references may repeat, in times the bytes read."""
FREELY_REPEATED = 1 << 20
"""The bytes that references may repeat in any stream, however short it is."""
LONGEST_NAME = 1_024
"""Characters of a constant's or field's name, which each value repeats by a few bytes."""


def check_repeated(repeated: int, read: int) -> None:
    """Raise ValueError if references repeat too many bytes of those that were read."""
    most = FREELY_REPEATED + MOST_REPEATED * read
    if repeated > most:
        raise ValueError(
            f"{read:,} bytes would become {repeated:,} and more, as some stand there once for "
            f"many uses; at most {most:,} are made of them, {MOST_REPEATED} times as many and "
            f"{FREELY_REPEATED:,}"
        )


@dataclass(frozen=True)
class ReadingContext:
    """The facts from outside that the reading of snapshots depends on; it may be pickled.

    `serializers` are those of the job's own, by the class of their snapshots, and the classes
    that Kryo writes, as a user describes them. `kryo_version` is that of the Kryo that wrote the
    values: 2 in Flink 1, 5 in Flink 2. `key_bytes` is the snapshot of the serializer of an
    operator's keys if the caller passed one, else b""; `max_parallelism` is the operator's then.
    `declared` is what a PyFlink job declares of an operator, which no header says, None without.
    """

    serializers: Mapping[str, Any] = field(default_factory=dict, hash=False)
    kryo_version: int = 5
    key_bytes: bytes = b""
    max_parallelism: int = 0
    declared: Any = None


_NEWEST = ReadingContext()


class Cursor:
    """A reader of big-endian values one after another; missing bytes raise with the offset.

    `name` is that of the file, `start` the offset of `data` in it. `context` is for the snapshots
    that are read with the cursor.
    """

    def __init__(
        self, data: bytes, name: str, start: int = 0, context: ReadingContext = _NEWEST
    ) -> None:
        self.data = data
        self.pos = 0
        self.name = name
        self.context = context
        self._start = start
        self._end = len(data)

    @property
    def left(self) -> int:
        """The number of bytes that follow."""
        return self._end - self.pos

    def error(self, message: str) -> SavepointError:
        """Return a SavepointError with the name of the file and the offset."""
        return SavepointError(f"{self.name}, offset {self._start + self.pos}: {message}")

    def take(self, count: int) -> bytes:
        """Read and return `count` bytes."""
        start = self.skip(count)
        return self.data[start : self.pos]

    def skip(self, count: int) -> int:
        """Pass over `count` bytes, and return the index of the first in `data`."""
        start = self.pos
        end = start + count
        if not start <= end <= self._end:
            raise self.error(f"{count} bytes were to follow, and {self.left} are left")
        self.pos = end
        return start

    def frame(self) -> Cursor:
        """Pass over a frame, an int and as many bytes, and return a cursor within it."""
        start = self.skip(self.i32())
        return self.within(start, self.pos)

    def within(self, start: int, end: int) -> Cursor:
        """Return a cursor on the same bytes, limited to those between two positions."""
        inside = Cursor(self.data, self.name, self._start, self.context)
        inside.pos, inside._end = start, end
        return inside

    def u8(self) -> int:
        """Read one byte."""
        start = self.skip(1)  # A subclass may fetch `data` here.
        return self.data[start]

    def varint(self) -> int:
        """Read a number of at most 64 bits, 7 in a byte, the lowest first: E9 01 is 0xE9."""
        number = 0
        for shift in range(0, 64, 7):
            byte = self.u8()
            number |= (byte & 0x7F) << shift
            if byte < 0x80 and number < 1 << 64:
                return number
        raise self.error("a number of more than 64 bits")

    def bool(self) -> bool:
        """Read a byte that is 0 or 1."""
        value = self.u8()
        if value > 1:
            self.pos -= 1
            raise self.error(f"{value} is neither true nor false")
        return value == 1

    def u16(self) -> int:
        """Read an unsigned short."""
        start = self.skip(2)
        (number,) = _u16(self.data, start)
        return int(number)

    def i32(self) -> int:
        """Read an int."""
        start = self.skip(4)
        (number,) = _i32(self.data, start)
        return int(number)

    def i64(self) -> int:
        """Read a long."""
        start = self.skip(8)
        (number,) = _i64(self.data, start)
        return int(number)

    def longs(self, count: int) -> tuple[int, ...]:
        """Read `count` longs."""
        start = self.skip(8 * count if count >= 0 else count)
        return struct.unpack_from(f">{count}q", self.data, start)

    def count(self, size: int = 1) -> int:
        """Read a number of things that follow; raise if that many of `size` bytes do not fit."""
        count = self.i32()
        if not 0 <= count * size <= self.left:
            self.pos -= 4
            raise self.error(f"a count of {count} cannot be, with {self.left - 4} bytes left")
        return count

    def expect(self, what: str, number: int, *allowed: int) -> int:
        """Return a number that was just read if it is an allowed one."""
        if number not in allowed:
            known = ", ".join(map(str, allowed))
            raise self.error(f"{what} {number} is not known, only {known}")
        return number

    def expect_end(self, what: str) -> None:
        """Raise if bytes are left after `what`."""
        if self.left:
            raise self.error(f"{self.left} bytes are left after {what}")

    def utf(self) -> str:
        """Read a string of Java's DataOutput: its length in bytes, and modified UTF-8."""
        return self.decode(self.take(self.u16()))

    def name_of_values(self) -> str:
        """Read the name of a constant or field, which must not be longer than `LONGEST_NAME`."""
        name = self.utf()
        if len(name) > LONGEST_NAME:
            raise self.error(
                f"a name of {len(name):,} characters, where values refer to it: at most "
                f"{LONGEST_NAME:,} are read"
            )
        return name

    def decode(self, data: bytes) -> str:
        """Return the text of modified UTF-8: NUL is C0 80, and each surrogate three bytes."""
        try:
            return modified_utf8(data)
        except UnicodeError:
            raise self.error("a text is not in modified UTF-8") from None


def modified_utf8(data: bytes) -> str:
    """Return the text of modified UTF-8, or raise UnicodeError.

    JDK: DataInputStream.readUTF.
    """
    if data.isascii():
        return data.decode("ascii")
    units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
