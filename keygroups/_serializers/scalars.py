"""How Flink's TypeSerializers write values: one object a type, which reads and writes bytes.

A reader takes bytes and a position, and returns the value and the position after it. What ends
too early is an IndexError or a struct.error, which whoever can fetch more bytes catches; what no
serializer can have written is another ValueError. All numbers are big endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from keygroups import types as kt
from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._values.rows import GlobalWindow, TimeWindow
from keygroups.errors import (
    InvalidTypeError,
    printable,
)
from keygroups.logical_types import LogicalType

Read = Callable[[bytes, int], tuple[Any, int]]


Write = Callable[[Any], bytes]


P = ParamSpec("P")


TRUNCATED = (IndexError, struct.error)
"""What a reader raises where the bytes end before the value does."""


class UnreadableError(ValueError):
    """A value that only the job's own classes can read, of a type that is read otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Serializer:
    """The type of a key, a namespace or a value in Flink's state; `str()` says it.

    `name` is BOOLEAN to DOUBLE, STRING, TUPLE, ROW, LIST, MAP or SQL_ROW as in
    `keygroups.types`, or VOID_NAMESPACE, TIME_WINDOW, GLOBAL_WINDOW, BYTES, SQL_STRING, RAW,
    NULL, ENUM, POJO, KRYO, TIMER or TTL. `parts` are the types that it is made of, `names` those
    of a POJO's fields, `fields` the logical types of a SQL_ROW, `java_class` the class of a POJO,
    an ENUM or what KRYO wrote. `key_type` is the key type for the same values, None where there
    is none. `size` is how many bytes every value takes, None where they differ.

    `read` and `write` turn bytes into a value and back; None where that takes the job's classes.

    Two are equal if they are made of the same, whichever savepoints they were read from.
    """

    name: str
    read: Read | None = None
    write: Write | None = None
    size: int | None = None
    parts: tuple[Serializer, ...] = ()
    key_type: kt.KeyType | None = None
    fields: tuple[LogicalType, ...] = ()
    names: tuple[str, ...] = ()
    java_class: str = ""
    _made_by: tuple[Callable[..., Serializer], tuple[object, ...]] | None = field(
        default=None, init=False
    )

    def __str__(self) -> str:
        return printable(exact_type(self))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Serializer) and self._origin() == other._origin()

    def __hash__(self) -> int:
        return hash(self._origin())

    def __reduce__(self) -> str | tuple[object, ...]:
        # A constant is told by its name, so that it stays the only one.
        return self.name if globals().get(self.name) is self else self._origin()

    def _origin(self) -> tuple[Callable[..., Serializer], tuple[object, ...]]:
        """Return what makes this serializer, and of what: its readers cannot be compared."""
        if self._made_by is not None:
            return self._made_by
        made_of = (self.name, self.read, self.write, self.size, self.parts, self.key_type)
        return Serializer, (*made_of, self.fields, self.names, self.java_class)


def exact_type(serializer: Serializer) -> str:
    """Return what `str()` says, with names as they are, whatever they have in them."""
    inside = [*map(exact_type, serializer.parts), *map(str, serializer.fields)]
    if serializer.names:
        inside = [f"{name} {part}" for name, part in zip(serializer.names, inside)]
    if serializer.java_class:
        inside.insert(0, serializer.java_class)
    return f"{serializer.name}({', '.join(inside)})" if inside else serializer.name


def maker(make: Callable[P, Serializer]) -> Callable[P, Serializer]:
    """Note in the serializers that a function makes, each a new one, that it does, and of what.

    Any function that defines readers or writers of its own needs this: they have no name by
    which pickle could find them.
    """
    parameters = [(one.name, one.default) for one in signature(make).parameters.values()]

    @wraps(make)
    def make_and_note(*args: P.args, **kwargs: P.kwargs) -> Serializer:
        made = make(*args, **kwargs)
        given = [*args, *(kwargs.get(*one) for one in parameters[len(args) :])]
        made_of = tuple(tuple(one) if isinstance(one, list) else one for one in given)
        object.__setattr__(made, "_made_by", (make_and_note, made_of))
        return made

    return make_and_note


_window = struct.Struct(">qq")
_unpack_long = struct.Struct(">q").unpack_from
_unpack_int = struct.Struct(">i").unpack_from
pack_int = struct.Struct(">i").pack


@maker
def _fixed(name: str, packed: str, key_type: kt.KeyType) -> Serializer:
    packer = struct.Struct(packed)
    unpack, size = packer.unpack_from, packer.size

    def read_fixed(data: bytes, pos: int) -> tuple[Any, int]:
        return unpack(data, pos)[0], pos + size

    return Serializer(name, read_fixed, packer.pack, size, key_type=key_type)


@maker
def _floating(name: str, packed: str, nan: str, key_type: kt.KeyType) -> Serializer:
    """Return the serializer of numbers of which any NaN is written as one, as the JDK does.

    JDK: DataOutputStream.writeDouble, Double.doubleToLongBits.
    """
    pack, the_nan = struct.Struct(packed).pack, bytes.fromhex(nan)

    def write_floating(number: float) -> bytes:
        return pack(number) if number == number else the_nan

    return replace(_fixed(name, packed, key_type), write=write_floating)


def _read_char(data: bytes, pos: int) -> tuple[str, int]:
    return chr(data[pos] << 8 | data[pos + 1]), pos + 2


def _write_char(char: str) -> bytes:
    return ord(char).to_bytes(2, "big")


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


def _read_sql_string(data: bytes, pos: int) -> tuple[str, int]:
    text, pos = read_bytes(data, pos)
    return text.decode(), pos


def _read_void(data: bytes, pos: int) -> tuple[None, int]:
    data[pos]  # which Flink does not look at either
    return None, pos + 1


def _write_void(value: object) -> bytes:
    if value is not None:
        raise InvalidTypeError(f"the namespace VOID_NAMESPACE must be None, got {show(value)}")
    return b"\0"


def _write_time_window(value: object) -> bytes:
    if not isinstance(value, TimeWindow):
        raise InvalidTypeError(f"TIME_WINDOW must be a TimeWindow, got {show(value)}")
    names = ("start of a TimeWindow", "end of a TimeWindow")
    return _window.pack(
        *(check_int(name, part, LONG_MIN, LONG_MAX) for name, part in zip(names, value))
    )


def _write_global_window(value: object) -> bytes:
    if not isinstance(value, GlobalWindow):
        raise InvalidTypeError(f"GLOBAL_WINDOW must be a GlobalWindow, got {show(value)}")
    return b"\0"


def _read_time_window(data: bytes, pos: int) -> tuple[TimeWindow, int]:
    return TimeWindow(*_window.unpack_from(data, pos)), pos + 16


def _read_global_window(data: bytes, pos: int) -> tuple[GlobalWindow, int]:
    data[pos]
    return GlobalWindow(), pos + 1


BOOLEAN = _fixed("BOOLEAN", ">?", kt.BOOLEAN)
BYTE = _fixed("BYTE", ">b", kt.BYTE)
SHORT = _fixed("SHORT", ">h", kt.SHORT)
INT = _fixed("INT", ">i", kt.INT)
LONG = _fixed("LONG", ">q", kt.LONG)
FLOAT = _floating("FLOAT", ">f", "7fc00000", kt.FLOAT)
DOUBLE = _floating("DOUBLE", ">d", "7ff8000000000000", kt.DOUBLE)
CHAR = Serializer("CHAR", _read_char, _write_char, 2, key_type=kt.CHAR)
STRING = Serializer("STRING", read_string, write_string, key_type=kt.STRING)
BYTES = Serializer("BYTES", read_bytes, write_bytes)
SQL_STRING = Serializer("SQL_STRING", _read_sql_string)
RAW = Serializer("RAW", read_bytes)
NULL = Serializer("NULL", _read_void, size=1)
# VoidNamespace says that it takes no byte, and writes one.
VOID_NAMESPACE = Serializer("VOID_NAMESPACE", _read_void, _write_void, 1)
TIME_WINDOW = Serializer("TIME_WINDOW", _read_time_window, _write_time_window, 16)
GLOBAL_WINDOW = Serializer("GLOBAL_WINDOW", _read_global_window, _write_global_window, 1)
