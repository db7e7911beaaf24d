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
"""How many times the bytes that are there may be those that are handed out once more."""
FREELY_REPEATED = 1 << 20
"""How many bytes a stream may hand out once more, however few it has."""
LONGEST_NAME = 1_024
"""How many characters a name has that values refer to in a few bytes: of a constant, a field."""


def check_repeated(repeated: int, there: int) -> None:
    """Refuse bytes that stand once and are handed out again and again, if too many.

    `there` are all that were read. Raises ValueError.
    """
    most = FREELY_REPEATED + MOST_REPEATED * there
    if repeated > most:
        raise ValueError(
            f"{there:,} bytes would become {repeated:,} and more, as some stand there once for "
            f"many uses; at most {most:,} are made of them, {MOST_REPEATED} times as many and "
            f"{FREELY_REPEATED:,}"
        )


@dataclass(frozen=True)
class ReadingContext:
    """What snapshots do not say themselves, and how they are read depends on; it may be pickled.

    `serializers` are those of the job's own, by the class of their snapshots, and the classes
    that Kryo writes, as a user describes them. `kryo_version` is that of the Kryo that wrote the
    values: 2 in Flink 1, 5 in Flink 2. `key_bytes` is a snapshot of the serializer of an
    operator's keys, as the caller told it, b"" as a rule; then `max_parallelism` is of the
    operator.
    """

    serializers: Mapping[str, Any] = field(default_factory=dict, hash=False)
    kryo_version: int = 5
    key_bytes: bytes = b""
    max_parallelism: int = 0


_NEWEST = ReadingContext()


class Cursor:
    """Reads big-endian values one after another; what is not there raises with the offset.

    `name` is that of the file, `start` the offset of `data` in it. `context` is what the snapshots
    that are read with the cursor are read with.
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
        """How many bytes follow."""
        return self._end - self.pos

    def error(self, message: str) -> SavepointError:
        """Return the error that says where it was."""
        return SavepointError(f"{self.name}, offset {self._start + self.pos}: {message}")

    def take(self, count: int) -> bytes:
        """Read so many bytes."""
        start = self.skip(count)
        return self.data[start : self.pos]

    def skip(self, count: int) -> int:
        """Pass over so many bytes, and return where they start in `data`."""
        start = self.pos
        end = start + count
        if not start <= end <= self._end:
            raise self.error(f"{count} bytes were to follow, and {self.left} are left")
        self.pos = end
        return start

    def frame(self) -> Cursor:
        """Read past what is framed by its length, and return a cursor in it, on the same bytes."""
        start = self.skip(self.i32())
        return self.within(start, self.pos)

    def within(self, start: int, end: int) -> Cursor:
        """Return a cursor on the same bytes, of which it has those between two positions."""
        inside = Cursor(self.data, self.name, self._start, self.context)
        inside.pos, inside._end = start, end
        return inside

    def u8(self) -> int:
        """Read one byte."""
        start = self.skip(1)  # before `data`, which may only then be there
        return self.data[start]

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
        """Read so many longs."""
        start = self.skip(8 * count if count >= 0 else count)
        return struct.unpack_from(f">{count}q", self.data, start)

    def count(self, size: int = 1) -> int:
        """Read how many things follow, each of at least `size` bytes; no more than fit."""
        count = self.i32()
        if not 0 <= count * size <= self.left:
            self.pos -= 4
            raise self.error(f"a count of {count} cannot be, with {self.left - 4} bytes left")
        return count

    def expect(self, what: str, number: int, *allowed: int) -> int:
        """Return a number that was just read if it is one of some."""
        if number not in allowed:
            known = ", ".join(map(str, allowed))
            raise self.error(f"{what} {number} is not known, only {known}")
        return number

    def expect_end(self, what: str) -> None:
        """Raise if bytes are left behind something that was read."""
        if self.left:
            raise self.error(f"{self.left} bytes are left after {what}")

    def utf(self) -> str:
        """Read a string of Java's DataOutput: its length in bytes, and modified UTF-8."""
        return self.decode(self.take(self.u16()))

    def name_of_values(self) -> str:
        """Read a string to which each value refers in a few bytes."""
        name = self.utf()
        if len(name) > LONGEST_NAME:
            raise self.error(
                f"a name of {len(name):,} characters, where values refer to it: at most "
                f"{LONGEST_NAME:,} are read"
            )
        return name

    def decode(self, data: bytes) -> str:
        """Return the text of modified UTF-8, where NUL and surrogates are written otherwise."""
        if data.isascii():
            return data.decode("ascii")
        try:
            units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        except UnicodeError:
            raise self.error("a text is not in modified UTF-8") from None
