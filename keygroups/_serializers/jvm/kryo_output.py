"""Writers of Kryo's values, for final classes whose values have one form only."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
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
from keygroups._values.java_time import (
    to_instant,
    to_local_date,
    to_local_date_time,
    to_local_time,
)

WriteBody = Callable[[Any, int], bytes]
"""`write(value, version)` returns the bytes of a value in that version of Kryo."""

_LONGEST_ASCII = {2: 63, 5: 32}  # characters of texts without a length, by the version of Kryo


def _zigzag(serializer: Serializer) -> WriteBody:
    def write_zigzag(value: Any, version: int) -> bytes:
        check_and_write(serializer, value)
        return _varlong(int(value))

    return write_zigzag


def _varlong(number: int) -> bytes:
    """Return a number in zigzag, 7 bits a byte and 8 in the ninth: -3 is 05, 300 is D8 04."""
    return _unsigned_varlong(2 * number if number >= 0 else -2 * number - 1)


def _unsigned_varlong(unsigned: int) -> bytes:
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


def _date(value: Any, version: int) -> bytes:
    return _date_of(to_local_date("LOCAL_DATE", value), version)


def _date_of(fields: Sequence[int], version: int) -> bytes:
    """Return the bytes of a year, a month and a day.

    Kryo 5 writes them by TimeSerializers, Kryo 2 as fields in the order of their names.
    """
    year, month, day = fields
    if version == 5:
        return write_varint(year & 0xFFFFFFFF) + bytes([month, day])
    return struct.pack(">hh", day, month) + _varlong(year)


def _time(value: Any, version: int) -> bytes:
    return _time_of(to_local_time("LOCAL_TIME", value), version)


def _time_of(fields: Sequence[int], version: int) -> bytes:
    """Return the bytes of an hour, a minute, a second and nanoseconds.

    Kryo 5 inverts the last of the first three that is not 0 and leaves out zeros after it, if
    there are no nanoseconds: 7:30 is 07 E1.
    """
    hour, minute, second, nano = fields
    if version == 2:
        return bytes([hour, minute]) + _varlong(nano) + bytes([second])
    if nano:
        return bytes([hour, minute, second]) + write_varint(nano)
    if second:
        return bytes([hour, minute, ~second & 0xFF])
    if minute:
        return bytes([hour, ~minute & 0xFF])
    return bytes([~hour & 0xFF])


def _date_time(value: Any, version: int) -> bytes:
    fields = to_local_date_time("LOCAL_DATE_TIME", value)
    date, time = _date_of(fields[:3], version), _time_of(fields[3:], version)
    return date + time if version == 5 else b"\1" + date + b"\1" + time  # 01 marks new objects.


def _instant(value: Any, version: int) -> bytes:
    second, nano = to_instant("INSTANT", value)
    if version == 5:
        return _unsigned_varlong(second & 2**64 - 1) + write_varint(nano)
    return _varlong(nano) + _varlong(second)


def head_by_name(java_class: str, version: int) -> bytes:
    """Return the head of a whole value of a class without a number.

    It is the mark of a class by name, 01, the number of the name, 00, the name, and the mark of a
    new object, 01.
    """
    return b"\1\0" + _text(java_class, version) + b"\1"


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
    "java.time.Instant": _instant,
    "java.time.LocalDate": _date,
    "java.time.LocalDateTime": _date_time,
    "java.time.LocalTime": _time,
    "java.util.UUID": _uuid,
}
"""Writers of objects by the name of their final class."""
