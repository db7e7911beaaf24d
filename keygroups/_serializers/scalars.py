"""The serializers that are made of no others: numbers, texts, bytes, windows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from keygroups import types as kt
from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import BASE, STATE, STREAMING, TABLE, Read, Simple, class_of
from keygroups._values.rows import GlobalWindow, TimeWindow
from keygroups.errors import InvalidTypeError

_WINDOWS = f"{STREAMING}windowing.windows."

_window = struct.Struct(">qq")
_unpack_long = struct.Struct(">q").unpack_from
_unpack_int = struct.Struct(">i").unpack_from
pack_int = struct.Struct(">i").pack


def read_string(data: bytes, pos: int) -> tuple[str | None, int]:
    """Read a String: its length + 1, 0 for null, and its UTF-16 units, each as a varint."""
    length = data[pos]
    pos += 1
    if length >= 0x80:
        length, pos = read_varint(data, pos - 1)
    if not length:
        return None, pos
    end = pos + length - 1
    text = data[pos:end]
    if not text.isascii():
        return _read_units(data, pos, length - 1)
    if end > len(data):
        raise IndexError("too few bytes")
    return text.decode("ascii"), end


def _read_units(data: bytes, pos: int, count: int) -> tuple[str, int]:
    if pos + count > len(data):  # before any room is made for them
        raise IndexError("too few bytes")
    units = bytearray()
    for _ in range(count):
        unit = data[pos]
        pos += 1
        if unit >= 0x80:
            unit, pos = read_varint(data, pos - 1)
            if unit > 0xFFFF:
                raise ValueError(f"{unit} is no UTF-16 unit")
        units += unit.to_bytes(2, "little")
    return units.decode("utf-16-le", "surrogatepass"), pos


def read_varint(data: bytes, pos: int, bits: int = 32) -> tuple[int, int]:
    """Read a number of so many bits, 7 in a byte, the lowest first."""
    number = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, pos
        shift += 7
        if shift > bits:
            raise ValueError(f"a number of more than {bits} bits")


def write_string(text: str | None) -> bytes:
    """Write a String as Flink's StringValue.writeString does."""
    if text is None:
        return b"\0"
    if text.isascii():
        return _varint(len(text) + 1) + text.encode("ascii")
    encoded = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    return _varint(len(units) + 1) + b"".join(map(_varint, units))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_int(data: bytes, pos: int) -> tuple[int, int]:
    """Read an Integer."""
    return _unpack_int(data, pos)[0], pos + 4


def read_long(data: bytes, pos: int) -> tuple[int, int]:
    """Read a Long."""
    return _unpack_long(data, pos)[0], pos + 8


def read_count(data: bytes, pos: int) -> tuple[int, int]:
    """Read how many bytes, or values of at least a byte, follow: never more than are there."""
    (count,) = _unpack_int(data, pos)
    pos += 4
    if count < 0:
        raise ValueError(f"a count of {count}")
    if count > len(data) - pos:
        raise IndexError("too few bytes")
    return count, pos


def read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    count, pos = read_count(data, pos)
    return data[pos : pos + count], pos + count


def write_bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidTypeError(f"BYTES must be bytes, got {show(value)}")
    return pack_int(len(value)) + value


class Fixed(Simple):
    """A number of a fixed size; `packed` is its format in `struct`'s terms."""

    packed: ClassVar[str]

    def bind(self, reads: Sequence[Read]) -> None:
        packer = struct.Struct(self.packed)
        unpack, size = packer.unpack_from, packer.size

        def read_fixed(data: bytes, pos: int) -> tuple[Any, int]:
            return unpack(data, pos)[0], pos + size

        self.read, self.write, self.size = read_fixed, packer.pack, size


class Floating(Fixed):
    """A number of which any NaN is written as one, as the JDK does.

    JDK: DataOutputStream.writeDouble, Double.doubleToLongBits.
    """

    nan: ClassVar[bytes]

    def bind(self, reads: Sequence[Read]) -> None:
        super().bind(reads)
        pack, nan = struct.Struct(self.packed).pack, self.nan

        def write_floating(number: float) -> bytes:
            return pack(number) if number == number else nan

        self.write = write_floating


class BooleanSerializer(Fixed):
    name, snapshot, packed, key_type = "BOOLEAN", class_of(BASE, "Boolean"), ">?", kt.BOOLEAN


class ByteSerializer(Fixed):
    name, snapshot, packed, key_type = "BYTE", class_of(BASE, "Byte"), ">b", kt.BYTE


class ShortSerializer(Fixed):
    name, snapshot, packed, key_type = "SHORT", class_of(BASE, "Short"), ">h", kt.SHORT


class IntSerializer(Fixed):
    name, snapshot, packed, key_type = "INT", class_of(BASE, "Int"), ">i", kt.INT


class LongSerializer(Fixed):
    name, snapshot, packed, key_type = "LONG", class_of(BASE, "Long"), ">q", kt.LONG


class FloatSerializer(Floating):
    name, snapshot, packed, key_type = "FLOAT", class_of(BASE, "Float"), ">f", kt.FLOAT
    nan = bytes.fromhex("7fc00000")


class DoubleSerializer(Floating):
    name, snapshot, packed, key_type = "DOUBLE", class_of(BASE, "Double"), ">d", kt.DOUBLE
    nan = bytes.fromhex("7ff8000000000000")


class CharSerializer(Simple):
    name, snapshot, size, key_type = "CHAR", class_of(BASE, "Char"), 2, kt.CHAR

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[str, int]:
        return chr(data[pos] << 8 | data[pos + 1]), pos + 2

    @staticmethod
    def write(char: str) -> bytes:
        return ord(char).to_bytes(2, "big")


class StringSerializer(Simple):
    name, snapshot, key_type = "STRING", class_of(BASE, "String"), kt.STRING
    takes_null = True
    read, write = staticmethod(read_string), staticmethod(write_string)


class BytePrimitiveArraySerializer(Simple):
    name, snapshot = "BYTES", class_of(f"{BASE}array.", "BytePrimitiveArray")
    read, write = staticmethod(read_bytes), staticmethod(write_bytes)


class ByteArrayWrapperSerializer(BytePrimitiveArraySerializer):
    """Of PyFlink's bytes, with those of arrays of bytes."""

    snapshot = class_of(f"{STREAMING}utils.", "ByteArrayWrapper")


class StringDataSerializer(Simple):
    name, snapshot = "SQL_STRING", class_of(TABLE, "StringData")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[str, int]:
        text, pos = read_bytes(data, pos)
        return text.decode(), pos


class NullSerializer(Simple):
    name, snapshot, size = "NULL", class_of("org.apache.flink.table.dataview.", "Null"), 1
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[None, int]:
        data[pos]  # which Flink does not look at either
        return None, pos + 1


class VoidNamespaceSerializer(NullSerializer):
    # VoidNamespace says that it takes no byte, and writes one.
    name, snapshot = "VOID_NAMESPACE", class_of(STATE, "VoidNamespace")

    @staticmethod
    def write(value: object) -> bytes:
        if value is not None:
            raise InvalidTypeError(f"the namespace VOID_NAMESPACE must be None, got {show(value)}")
        return b"\0"


class TimeWindowSerializer(Simple):
    name, size = "TIME_WINDOW", 16
    snapshot = f"{_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[TimeWindow, int]:
        return TimeWindow(*_window.unpack_from(data, pos)), pos + 16

    @staticmethod
    def write(value: object) -> bytes:
        if not isinstance(value, TimeWindow):
            raise InvalidTypeError(f"TIME_WINDOW must be a TimeWindow, got {show(value)}")
        names = ("start of a TimeWindow", "end of a TimeWindow")
        return _window.pack(
            *(check_int(name, part, LONG_MIN, LONG_MAX) for name, part in zip(names, value))
        )


class GlobalWindowSerializer(Simple):
    name, size = "GLOBAL_WINDOW", 1
    snapshot = f"{_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[GlobalWindow, int]:
        data[pos]
        return GlobalWindow(), pos + 1

    @staticmethod
    def write(value: object) -> bytes:
        if not isinstance(value, GlobalWindow):
            raise InvalidTypeError(f"GLOBAL_WINDOW must be a GlobalWindow, got {show(value)}")
        return b"\0"


BOOLEAN = BooleanSerializer()
BYTE = ByteSerializer()
SHORT = ShortSerializer()
INT = IntSerializer()
LONG = LongSerializer()
FLOAT = FloatSerializer()
DOUBLE = DoubleSerializer()
CHAR = CharSerializer()
STRING = StringSerializer()
BYTES = BytePrimitiveArraySerializer()
SQL_STRING = StringDataSerializer()
NULL = NullSerializer()
VOID_NAMESPACE = VoidNamespaceSerializer()
TIME_WINDOW = TimeWindowSerializer()
GLOBAL_WINDOW = GlobalWindowSerializer()
