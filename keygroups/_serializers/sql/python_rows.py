"""The serializers of arrays, maps and rows of PyFlink's SQL functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

from keygroups._checks import show
from keygroups._serializers.base import (
    BASE,
    TABLE,
    Read,
    Serializer,
    Write,
    check_and_write,
    class_of,
    nested_contents,
    read_nested,
)
from keygroups._serializers.compounds import RowSerializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.jvm.objects import JavaObject, read_java_object
from keygroups._serializers.scalars import (
    BOOLEAN,
    BYTE,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    SQL_STRING,
    pack_int,
    read_count,
)
from keygroups._serializers.sql.java_types import read_logical_type
from keygroups._serializers.sql.python_scalars import PYTHON, PythonDecimalSerializer
from keygroups._serializers.sql.rows import TimestampDataSerializer, WithStreams, read_stream
from keygroups._serializers.sql.table_runtime import Items
from keygroups._serializers.sql.values import timestamp_converter
from keygroups._values import checks
from keygroups._values.sql import TimestampData, day_millis, day_of, epoch_day, time_of
from keygroups.logical_types import LogicalType


class TypedSerializer(Serializer):
    """A value of a logical type, of which its serializer does not know everything.

    The serializer has numbers for DATE and TIME, and takes TIMESTAMP_LTZ for TIMESTAMP.
    """

    name = "SQL_VALUE"

    def __init__(self, field: LogicalType, serializer: Serializer) -> None:
        self.fields = (field,)
        self.parts = (serializer,)
        super().__init__(field, serializer)

    def bind(self, reads: Sequence[Read]) -> None:
        [field], [serializer], [read] = self.fields, self.parts, reads
        write: Write = partial(check_and_write, serializer)
        self.read, self.write = read, write
        if serializer == INT and field.name in ("DATE", "TIME"):
            to_value = day_of if field.name == "DATE" else time_of
            to_number = partial(epoch_day if field.name == "DATE" else day_millis, str(field))

            def read_number(data: bytes, pos: int) -> tuple[Any, int]:
                number, pos = read(data, pos)
                return to_value(number), pos

            self.read, self.write = read_number, lambda value: write(to_number(value))
        elif isinstance(serializer, TimestampDataSerializer) and field.name == "TIMESTAMP_LTZ":
            convert = timestamp_converter(field)

            def read_instant(data: bytes, pos: int) -> tuple[Any, int]:
                value, pos = read(data, pos)
                if isinstance(value, datetime):
                    value = value.replace(tzinfo=timezone.utc)
                return value, pos

            self.read = read_instant
            self.write = lambda value: write(TimestampData(*convert(value)))

    def versioned_snapshot(self) -> bytes:
        [part] = self.parts
        return part.versioned_snapshot()


class PythonArraySerializer(WithStreams):
    """An array: a count, then 00 for null or 01 and the value of each element."""

    name, versions = "PYTHON_ARRAY", (1,)
    snapshot = class_of(PYTHON, "ArrayData")

    def __init__(
        self,
        element: LogicalType,
        serializer: Serializer,
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.parts = (TypedSerializer(element, serializer),)
        super().__init__(element, serializer, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [element], name = reads, self.parts, str(self)

        def read_array(data: bytes, pos: int) -> tuple[list[Any], int]:
            count, pos = read_count(data, pos)
            elements = []
            for _ in range(count):
                is_there, pos, value = data[pos], pos + 1, None
                if is_there:
                    value, pos = read(data, pos)
                elements.append(value)
            return elements, pos

        def write_array(values: object) -> bytes:
            elements = checks.expect(name, values, list, "a list")
            written = [pack_int(len(elements))]
            for value in elements:
                written.append(b"\0" if value is None else b"\1" + check_and_write(element, value))
            return b"".join(written)

        self.read, self.write = read_array, write_array

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        element, type_stream = read_stream(cursor, read_logical_type)
        serializer, stream = read_stream(cursor, read_java_object)
        return cls(element, _serializer(cursor, element, serializer), (type_stream, stream))

    def contents(self) -> bytes:
        return self.written_streams()


class PythonMapSerializer(WithStreams, Items):
    """A map: a count, then each key, and 01 for a null or 00 and the value."""

    name, versions = "PYTHON_MAP", (1,)
    snapshot = f"{PYTHON}MapDataSerializer$BaseMapSerializerSnapshot"

    def __init__(
        self,
        types: tuple[LogicalType, LogicalType],
        serializers: tuple[Serializer, Serializer],
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.parts = tuple(map(TypedSerializer, types, serializers))
        super().__init__(types, serializers, streams)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        types = [read_stream(cursor, read_logical_type) for _ in range(2)]
        objects = [read_stream(cursor, read_java_object) for _ in range(2)]
        (key, _), (value, _) = types
        key_serializer, value_serializer = (
            _serializer(cursor, field, serializer)
            for field, serializer in ((key, objects[0][0]), (value, objects[1][0]))
        )
        streams = tuple(stream for _, stream in types + objects)
        return cls((key, value), (key_serializer, value_serializer), streams)

    def contents(self) -> bytes:
        return self.written_streams()


class PythonRowSerializer(WithStreams):
    """A row: a mask with its kind and null bits, as that of ROW, then the fields without nulls."""

    name, versions = "PYTHON_ROW", (3,)
    snapshot = class_of(PYTHON, "RowData")

    def __init__(
        self,
        types: tuple[LogicalType, ...],
        serializers: tuple[Serializer, ...],
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.parts = tuple(map(TypedSerializer, types, serializers))
        super().__init__(types, serializers, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        row = RowSerializer(self.parts)
        self.read, self.write = row.read, row.write

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        types = [read_stream(cursor, read_logical_type) for _ in range(cursor.count(4))]
        nested = read_nested(cursor, depth)
        cursor.expect("number of nested serializers", len(nested), len(types))
        fields, streams = (tuple(column) for column in zip(*types)) if types else ((), ())
        return cls(fields, tuple(nested), streams)

    def contents(self) -> bytes:
        return i32(len(self.parts)) + self.written_streams() + nested_contents(self.parts)


def _serializer(cursor: Cursor, field: LogicalType, serializer: object) -> Serializer:
    """Return the Serializer for a Java object that serializes values of a logical type."""
    if isinstance(serializer, JavaObject):
        if serializer.java_class in _BY_CLASS:
            return _BY_CLASS[serializer.java_class]
        is_timestamp = field.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
        if serializer.java_class == f"{TABLE}TimestampDataSerializer" and is_timestamp:
            return TimestampDataSerializer(field.precision or 0)
        if serializer.java_class == f"{PYTHON}DecimalDataSerializer" and field.name == "DECIMAL":
            assert field.precision is not None
            return PythonDecimalSerializer(field.precision, field.scale or 0)
        if serializer.java_class == f"{PYTHON}ArrayDataSerializer" and field.name == "ARRAY":
            inner = serializer.fields.get("elementTypeSerializer")
            [element] = field.fields
            return PythonArraySerializer(element, _serializer(cursor, element, inner))
    java_class = serializer.java_class if isinstance(serializer, JavaObject) else "no object"
    raise cursor.error(f"the serializer {show(java_class)} of a {field} is not known")


_BY_CLASS: dict[str, Serializer] = {
    **{
        f"{BASE}{name}Serializer": serializer
        for name, serializer in (
            ("Boolean", BOOLEAN),
            ("Byte", BYTE),
            ("Short", SHORT),
            ("Int", INT),
            ("Long", LONG),
            ("Float", FLOAT),
            ("Double", DOUBLE),
            ("array.BytePrimitiveArray", BYTES),
        )
    },
    f"{TABLE}StringDataSerializer": SQL_STRING,
}
"""Serializers by their own class in Flink, not by that of their snapshot."""
