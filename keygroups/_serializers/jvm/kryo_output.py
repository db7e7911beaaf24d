"""Values that Kryo writes in one way only, where the declared class says what they are."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

from keygroups._serializers.base import Serializer, check_and_write
from keygroups._serializers.scalars import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    write_varint,
)
from keygroups._values.checks import expect

WriteBody = Callable[[Any, int], bytes]
"""Writes a value for a version of Kryo."""

_LONGEST_ASCII = {2: 63, 5: 32}  # by the version of Kryo: of texts written without a length


def _zigzag(serializer: Serializer) -> WriteBody:
    def write_zigzag(value: Any, version: int) -> bytes:
        check_and_write(serializer, value)
        return _varlong(int(value))

    return write_zigzag


def _varlong(number: int) -> bytes:
    """Return a number with its sign in the lowest bit, in nine bytes at most, the ninth whole."""
    unsigned = 2 * number if number >= 0 else -2 * number - 1
    if unsigned < 1 << 56:
        return write_varint(unsigned)
    return write_varint(unsigned)[:8] + bytes([unsigned >> 56])


def _fixed(serializer: Serializer) -> WriteBody:
    def write_fixed(value: Any, version: int) -> bytes:
        data = check_and_write(serializer, value)
        return data if version == 2 else data[::-1]

    return write_fixed


def _text(value: Any, version: int) -> bytes:
    text = expect("STRING", value, str, "a str")
    if 2 <= len(text) <= _LONGEST_ASCII[version] and text.isascii():
        return text[:-1].encode() + bytes([ord(text[-1]) | 0x80])
    encoded = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    length = len(units) + 1
    if length < 0x40:
        head = bytes([0x80 | length])
    else:
        head = bytes([0xC0 | length & 0x3F]) + write_varint(length >> 6)
    return head + "".join(map(chr, units)).encode("utf-8", "surrogatepass")


def _uuid(value: Any, version: int) -> bytes:
    halves = struct.unpack(">2q", expect("UUID", value, uuid.UUID, "a uuid.UUID").bytes)
    if version == 5:
        return struct.pack("<2q", *halves)
    return b"".join(map(_varlong, halves))


WRITE_BODIES: dict[str, WriteBody] = {
    "java.lang.Boolean": _fixed(BOOLEAN),
    "java.lang.Byte": _fixed(BYTE),
    "java.lang.Character": _fixed(CHAR),
    "java.lang.Double": _fixed(DOUBLE),
    "java.lang.Float": _fixed(FLOAT),
    "java.lang.Integer": _zigzag(INT),
    "java.lang.Long": _zigzag(LONG),
    "java.lang.Short": _fixed(SHORT),
    "java.lang.String": _text,
    "java.util.UUID": _uuid,
}
"""By the name of a final class: what writes its objects."""
