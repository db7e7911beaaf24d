"""Building blocks of serializers for rare values, such as those of CEP and of sinks.

A serializer made of them takes 1.5 times as long as code written out for it: scalars, tuples and
rows, of which most states are made, have such code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from keygroups._checks import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    check_int,
    check_str,
    show,
)
from keygroups._serializers.base import Read, Serializer, Write, check_and_write
from keygroups._serializers.data_input import modified_utf8
from keygroups._serializers.data_output import i32, i64, utf
from keygroups._serializers.scalars import (
    read_count,
    read_int,
    read_long,
    read_string,
    write_string,
)
from keygroups._values.java_values import Some
from keygroups.errors import InvalidTypeError


class Field(NamedTuple):
    """Reader and writer of a value; `write` takes its name in errors, and the value."""

    read: Read
    write: Callable[[str, Any], bytes]

    def named(self, name: str) -> tuple[Read, Write]:
        """Return `read` and `write` for a Serializer; errors name it."""
        return self.read, partial(self.write, name)


INT = Field(read_int, lambda name, value: i32(check_int(name, value, INT_MIN, INT_MAX)))
LONG = Field(read_long, lambda name, value: i64(check_int(name, value, LONG_MIN, LONG_MAX)))
TEXT = Field(
    read_string, lambda name, text: write_string(None if text is None else check_str(name, text))
)


def read_utf(data: bytes, pos: int) -> tuple[str, int]:
    """Read a text as Java's DataOutput has it, two bytes of its length before it."""
    start = pos + 2
    end = start + int.from_bytes(data[pos:start], "big")
    if max(start, end) > len(data):
        raise IndexError("too few bytes")
    return modified_utf8(data[start:end]), end


UTF = Field(read_utf, lambda name, text: utf(name, check_str(name, text)))


def part(serializer: Serializer) -> Field:
    """Return the field of a serializer's values, whose errors have the serializer's name."""
    assert serializer.read is not None
    return Field(serializer.read, lambda name, value: check_and_write(serializer, value))


def record(cls: Any, *fields: Field) -> Field:
    """Return the field of a NamedTuple: its own fields, in order."""
    reads = [field.read for field in fields]
    article = "an" if cls.__name__.startswith(("E", "NFA")) else "a"
    names = [f"{field} of {article} {cls.__name__}" for field in cls._fields]
    writes = [field.write for field in fields]

    def read_record(data: bytes, pos: int) -> tuple[Any, int]:
        values = []
        for read in reads:
            value, pos = read(data, pos)
            values.append(value)
        return cls(*values), pos

    def write_record(name: str, value: object) -> bytes:
        checked: Any = _expect(name, value, cls)
        return b"".join(write(n, v) for write, n, v in zip(writes, names, checked))

    return Field(read_record, write_record)


def many(element: Field, cls: type[list[Any]] | type[tuple[Any, ...]] = list) -> Field:
    """Return the field of a list, or a tuple: a count, then as many elements."""
    read, write = element

    def read_many(data: bytes, pos: int) -> tuple[Any, int]:
        count, pos = read_count(data, pos)
        values = []
        for _ in range(count):
            value, pos = read(data, pos)
            values.append(value)
        return cls(values), pos

    def write_many(name: str, values: object) -> bytes:
        checked = _expect(name, values, cls)
        written = (write(f"element {i} of {name}", value) for i, value in enumerate(checked))
        return i32(len(checked)) + b"".join(written)

    return Field(read_many, write_many)


def nullable(value: Field) -> Field:
    """Return the field of a value or None: 01 and the value, or 00."""
    read, write = value

    def read_nullable(data: bytes, pos: int) -> tuple[Any, int]:
        return read(data, pos + 1) if data[pos] else (None, pos + 1)

    return Field(
        read_nullable,
        lambda name, value: b"\0" if value is None else b"\1" + write(name, value),
    )


def option(value: Field) -> Field:
    """Return the field of a Some or None, for values that may be None themselves."""
    read, write = value

    def read_some(data: bytes, pos: int) -> tuple[Some, int]:
        inner, pos = read(data, pos)
        return Some(inner), pos

    def write_some(name: str, value: object) -> bytes:
        return write(name, _expect(name, value, Some, "None or ").value)

    return nullable(Field(read_some, write_some))


def _expect(name: str, value: object, cls: Any, before: str = "") -> Any:
    if isinstance(value, cls):
        return value
    raise InvalidTypeError(f"{name} must be {before}of class {cls.__name__}, got {show(value)}")
