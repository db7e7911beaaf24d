"""Numbers and texts as Java's DataOutput writes them, the counterpart of `data_input`."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from keygroups._checks import show
from keygroups.errors import InvalidValueError

MAX_UTF = 65_535
"""The most bytes of a text."""

u16 = struct.Struct(">H").pack
i32 = struct.Struct(">i").pack
i64 = struct.Struct(">q").pack


def longs(numbers: Sequence[int]) -> bytes:
    """Return the bytes of longs, 8 each."""
    return struct.pack(f">{len(numbers)}q", *numbers)


def utf(name: str, text: str) -> bytes:
    """Return a text in modified UTF-8 after its length, or raise with its name if it is too long.

    There NUL takes two bytes, C0 80, and each half of a surrogate pair three: U+1F600 is ED A0 BD
    ED B8 80.

    JDK: DataOutputStream.writeUTF.
    """
    if text.isascii() and "\0" not in text:
        data = text.encode("ascii")
    else:
        units = text.encode("utf-16-le", "surrogatepass")
        halves = (
            units[at : at + 2].decode("utf-16-le", "surrogatepass")
            for at in range(0, len(units), 2)
        )
        data = "".join(halves).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(data) > MAX_UTF:
        raise InvalidValueError(
            f"{name} must take at most {MAX_UTF} bytes, got {len(data)}: {show(text)}"
        )
    return u16(len(data)) + data
