"""The serializers of numbers of a fixed size, texts, bytes, nulls and windows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from keygroups import types as kt
from keygroups._checks import LONG_MAX, LONG_MIN, check_class, check_int, check_str, show
from keygroups._serializers.base import (
    BASE,
    STATE,
    STREAMING,
    TABLE,
    Read,
    Simple,
    Write,
    class_of,
)
from keygroups._serializers.value_checks import check_value
from keygroups._values.rows import GlobalWindow, TimeWindow
from keygroups._values.sql import CountWindow
from keygroups.errors import InvalidTypeError, InvalidValueError

_WINDOWS = f"{STREAMING}windowing.windows."
_TABLE_WINDOWS = "org.apache.flink.table.runtime.operators.window."
_SINK = "org.apache.flink.table.runtime.operators.sink."
_SIGN = 1 << 63

_window = struct.Struct(">qq")
_unpack_long = struct.Struct(">q").unpack_from
_pack_long = struct.Struct(">q").pack
_unpack_int = struct.Struct(">i").unpack_from
pack_int = struct.Struct(">i").pack


def read_string(data: bytes, pos: int) -> tuple[str | None, int]:
    """Read a String: its length + 1, 0 for null, and its UTF-16 units, each as a varint.

    An "a" and an e with an acute accent, U+00E9, are 03 61 E9 01.
    """
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
    if pos + count > len(data):  # A false count must not make the loop fill the memory.
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
    """Read a number of at most `bits` bits, 7 in a byte, the lowest first: E9 01 is 0xE9."""
    number = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, pos
        shift += 7
        if shift >= bits:
            raise ValueError(f"a number of more than {bits} bits")


_VARINTS = [bytes([number]) for number in range(0x80)]  # numbers of one byte


def write_string(text: str | None) -> bytes:
    """Write a String as Flink's StringValue.writeString does."""
    if text is None:
        return b"\0"
    if text.isascii():
        size = len(text) + 1
        start = _VARINTS[size] if size < 0x80 else write_varint(size)
        return start + text.encode("ascii")
    encoded = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    return write_varint(len(units) + 1) + b"".join(map(write_varint, units))


def read_string_value(data: bytes, pos: int) -> tuple[str, int]:
    """Read a StringValue: its length, and its UTF-16 units, each as a varint."""
    length, pos = read_varint(data, pos)
    return _read_units(data, pos, length)


def write_string_value(text: str) -> bytes:
    """Write a StringValue, which differs from a String in its length, one less."""
    _, start = read_varint(written := write_string(text), 0)
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return write_varint(units) + written[start:]


def write_varint(number: int) -> bytes:
    """Write a number as `read_varint` reads it."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_int(data: bytes, pos: int) -> tuple[int, int]:
    """Read an Integer."""
    (number,) = _unpack_int(data, pos)
    return number, pos + 4


def read_long(data: bytes, pos: int) -> tuple[int, int]:
    """Read a Long."""
    (number,) = _unpack_long(data, pos)
    return number, pos + 8


def read_count(data: bytes, pos: int) -> tuple[int, int]:
    """Read the number of bytes, or of values of at least a byte, that follow; they have to fit."""
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
    """A number of a fixed size; `packed` is its format, of the module struct."""

    packed: ClassVar[str]

    def bind(self, reads: Sequence[Read]) -> None:
        packer = struct.Struct(self.packed)
        unpack, size = packer.unpack_from, packer.size

        def read_fixed(data: bytes, pos: int) -> tuple[Any, int]:
            (number,) = unpack(data, pos)
            return number, pos + size

        self.read, self.write, self.size = read_fixed, packer.pack, size


class Floating(Fixed):
    """A floating-point number; any NaN is written as the canonical one, as the JDK does.

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


def checked(write: Write, key_type: kt.KeyType) -> Write:
    """Return the writer that checks a value by a key type which its serializer does not have."""

    def write_checked(value: Any) -> bytes:
        check_value(value, key_type)
        return write(value)

    return write_checked


class SortedLongSerializer(Simple):
    """A Long with the sign bit flipped, so that bytes sort as numbers do."""

    name, snapshot, size = "SORTED_LONG", class_of(_SINK, "SortedLong"), 8

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[int, int]:
        (number,) = _unpack_long(data, pos)
        return number ^ -_SIGN, pos + 8

    @staticmethod
    def write(number: object) -> bytes:
        return _pack_long(check_int("SORTED_LONG", number, LONG_MIN, LONG_MAX) ^ -_SIGN)


class StringSerializer(Simple):
    name, snapshot, key_type = "STRING", class_of(BASE, "String"), kt.STRING
    takes_null = True
    read, write = staticmethod(read_string), staticmethod(write_string)


class BytePrimitiveArraySerializer(Simple):
    name, snapshot = "BYTES", class_of(f"{BASE}array.", "BytePrimitiveArray")
    read, write = staticmethod(read_bytes), staticmethod(write_bytes)


class ByteArrayWrapperSerializer(BytePrimitiveArraySerializer):
    """The bytes of PyFlink, written as an array of bytes."""

    name, snapshot = "BYTE_ARRAY_WRAPPER", class_of(f"{STREAMING}utils.", "ByteArrayWrapper")


class StringDataSerializer(Simple):
    name, snapshot = "SQL_STRING", class_of(TABLE, "StringData")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[str, int]:
        text, pos = read_bytes(data, pos)
        return text.decode(), pos

    @staticmethod
    def write(value: object) -> bytes:
        text = check_str("SQL_STRING", value)
        try:
            return write_bytes(text.encode())
        except UnicodeEncodeError:
            raise InvalidValueError(
                f"SQL_STRING must have no lone surrogate, got {show(text)}"
            ) from None


class NullSerializer(Simple):
    """A null, as a byte."""

    name, snapshot, size = "NULL", class_of("org.apache.flink.table.dataview.", "Null"), 1
    takes_null = True

    def bind(self, reads: Sequence[Read]) -> None:
        name, written = self.name, bytes(self.size or 0)

        def read_none(data: bytes, pos: int) -> tuple[None, int]:
            data[pos]  # The byte has to exist; Flink ignores its value too.
            return None, pos + 1

        def write_none(value: object) -> bytes:
            if value is not None:
                raise InvalidTypeError(f"{name} must be None, got {show(value)}")
            return written

        self.read = read_none if written else lambda data, pos: (None, pos)
        self.write = write_none


class VoidSerializer(NullSerializer):
    name, snapshot = "VOID", class_of(BASE, "Void")


class NullValueSerializer(NullSerializer):
    name, snapshot, size = "NULL_VALUE", class_of(BASE, "NullValue"), 0


class VoidNamespaceSerializer(NullSerializer):
    # Flink's VoidNamespaceSerializer claims a length of 0, and writes a byte.
    name, snapshot = "VOID_NAMESPACE", class_of(STATE, "VoidNamespace")


class QueryableVoidNamespaceSerializer(NullSerializer):
    name = "VOID_NAMESPACE"
    snapshot = class_of("org.apache.flink.queryablestate.client.", "VoidNamespace")


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


class TableTimeWindowSerializer(TimeWindowSerializer):
    snapshot = f"{_TABLE_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot"


class TableGlobalWindowSerializer(GlobalWindowSerializer):
    snapshot = f"{_TABLE_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"


class CountWindowSerializer(Simple):
    name, size = "COUNT_WINDOW", 8
    snapshot = f"{_TABLE_WINDOWS}CountWindow$Serializer$CountWindowSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[CountWindow, int]:
        return CountWindow(*_unpack_long(data, pos)), pos + 8

    @staticmethod
    def write(value: object) -> bytes:
        window = check_class("COUNT_WINDOW", value, CountWindow, "a CountWindow")
        return _pack_long(check_int("id of a CountWindow", window.id, LONG_MIN, LONG_MAX))


BOOLEAN = BooleanSerializer()
BYTE = ByteSerializer()
SHORT = ShortSerializer()
INT = IntSerializer()
LONG = LongSerializer()
SORTED_LONG = SortedLongSerializer()
FLOAT = FloatSerializer()
DOUBLE = DoubleSerializer()
CHAR = CharSerializer()
STRING = StringSerializer()
BYTES = BytePrimitiveArraySerializer()
BYTE_ARRAY_WRAPPER = ByteArrayWrapperSerializer()
SQL_STRING = StringDataSerializer()
NULL = NullSerializer()
VOID_NAMESPACE = VoidNamespaceSerializer()
TIME_WINDOW = TimeWindowSerializer()
GLOBAL_WINDOW = GlobalWindowSerializer()
TABLE_TIME_WINDOW = TableTimeWindowSerializer()
TABLE_COUNT_WINDOW = CountWindowSerializer()
