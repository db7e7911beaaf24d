"""The serializers of Flink SQL's internal values: rows, arrays, maps, decimals, timestamps.

Their snapshots hold logical types, and other serializers, as Java objects.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from keygroups import types as kt
from keygroups._checks import show
from keygroups._serializers.base import (
    BASE,
    REGISTRY,
    TABLE,
    TRUNCATED,
    Composite,
    Read,
    Serializer,
    UnknownSerializer,
    Write,
    check_and_write,
    class_of,
    nested_contents,
    read_nested,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.jvm.objects import read_java_object
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
    read_bytes,
    read_int,
    read_long,
    write_bytes,
)
from keygroups._serializers.sql.java_types import read_logical_type, write_logical_type
from keygroups._serializers.sql.values import (
    EXACT,
    Decode,
    array_reader,
    decimal_converter,
    decimal_reader,
    map_reader,
    row_reader,
    timestamp_converter,
    timestamp_reader,
    value_encoder,
)
from keygroups._values.rows import Row
from keygroups._values.sql import TimestampData
from keygroups.binary_row import items_of, row_encoder
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType, row_header_size

_pack_timestamp = struct.Struct(">qi").pack


class WithStreams(Serializer):
    """A serializer whose snapshot has Java objects in it: `streams` are their bytes as read.

    They are written again as they are; without them the snapshot cannot be written. Versions of
    Flink write the same objects in other bytes, by other lambdas and serialVersionUIDs, so two
    serializers are equal if everything but the streams is.
    """

    def __init__(self, *arguments: Any) -> None:
        self.streams: tuple[bytes, ...] | None = arguments[-1]
        super().__init__(*arguments)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash((type(self), self._meaning()))

    def _meaning(self) -> tuple[object, ...]:
        return self.__reduce__()[1][:-1]

    def written_streams(self) -> bytes:
        """Return the streams, one after the other; raise where none were read."""
        if self.streams is None:
            raise UnsupportedKeyTypeError(
                f"the snapshot of {self} is only written as it was read, as it has Java objects: "
                "use a savepoint of the job as the template of a SavepointWriter"
            )
        return b"".join(self.streams)


def read_stream(cursor: Cursor, read: Callable[[Cursor], Any]) -> tuple[Any, bytes]:
    """Return the object that `read` makes of a Java object stream, and the stream's bytes."""
    start = cursor.pos
    made = read(cursor)
    return made, cursor.data[start : cursor.pos]


def framed(name: str, decode: Decode) -> Read:
    """Return the reader of a frame, a length and as many bytes, which `decode` makes a value."""

    def read_framed(data: bytes, pos: int) -> tuple[Any, int]:
        inside, pos = read_bytes(data, pos)
        try:
            return decode(inside), pos
        except TRUNCATED:  # The frame is whole, so that fetching more bytes would not help.
            raise ValueError(f"{len(inside)} bytes are no {name}") from None

    return read_framed


class RowDataSerializer(WithStreams):
    """A SQL row: its size in bytes, then a BinaryRowData.

    Two are equal if their fields have the same logical types, and the same serializers.
    """

    name, snapshot, versions = "SQL_ROW", class_of(TABLE, "RowData"), (3,)

    def __init__(
        self,
        fields: Sequence[LogicalType],
        nested: Sequence[Serializer] | None = None,
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.fields = tuple(fields)
        self._nested = tuple(map(internal_serializer, fields) if nested is None else nested)
        with suppress(KeyGroupsError):  # Some types, such as RAW, make no key.
            self.key_type = kt.SQL_ROW(*map(str, fields))
        super().__init__(self.fields, self._nested, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        encode = value_encoder(LogicalType("ROW", fields=self.fields))
        self.read = framed(f"row of {len(self.fields)} fields", row_reader(self.fields))
        self.write = lambda values: write_bytes(encode(values))
        if isinstance(self.key_type, kt.SQL_ROW):
            encode_key = row_encoder(self.key_type)
            self.write_key = lambda key: write_bytes(encode_key(key))
        else:
            self.write_key = self._refuse_key

    def _refuse_key(self, key: object) -> bytes:
        raise UnsupportedKeyTypeError(f"a key of {self} cannot be written here")

    def projected(self) -> Write:
        """Return the writer of rows that the planner's code projects, such as a sort key.

        They are of kind +I, and a NULL of a long DECIMAL or TIMESTAMP takes room in them, as in a
        key: the same row has other bytes as a value.

        Flink: ProjectionCodeGenerator.
        """
        encode = value_encoder(LogicalType("ROW", fields=self.fields), is_projected=True)

        def write(row: object) -> bytes:
            if isinstance(row, Row) and row.row_kind != "+I":
                raise InvalidValueError(
                    f"a {self} must be of kind +I here, as Flink's keys are, got {show(row)}"
                )
            return write_bytes(encode(row))

        return write

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        read = [read_stream(cursor, read_logical_type) for _ in range(cursor.count(4))]
        nested = read_nested(cursor, depth)
        return cls([field for field, _ in read], nested, tuple(stream for _, stream in read))

    def contents(self) -> bytes:
        streams = self.written_streams()
        return i32(len(self.fields)) + streams + nested_contents(self._nested)

    def written_streams(self) -> bytes:
        """Return the streams as read, or new ones if `write_logical_type` has all types."""
        if self.streams is None:
            made = [*map(write_logical_type, self.fields)]
            if None not in made:
                return b"".join(filter(None, made))
        return super().written_streams()


class ArrayDataSerializer(WithStreams):
    """A SQL array: its size in bytes, then a BinaryArrayData.

    Two are equal if their elements have the same logical type.
    """

    name, snapshot, versions = "SQL_ARRAY", class_of(TABLE, "ArrayData"), (3,)

    def __init__(self, element: LogicalType, streams: tuple[bytes, ...] | None = None) -> None:
        self.fields = (element,)
        super().__init__(element, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        encode = value_encoder(LogicalType("ARRAY", fields=self.fields))
        self.read = framed("array", array_reader(*self.fields))
        self.write = lambda values: write_bytes(encode(values))

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        element, stream = read_stream(cursor, read_logical_type)
        return cls(element, (stream, read_stream(cursor, read_java_object)[1]))

    def contents(self) -> bytes:
        return self.written_streams()


class MapDataSerializer(WithStreams):
    """A SQL map, or a multiset: its size in bytes, then a BinaryMapData.

    Two are equal if their keys and values have the same logical types.
    """

    name, snapshot, versions = "SQL_MAP", class_of(TABLE, "MapData"), (3,)

    def __init__(
        self, key: LogicalType, value: LogicalType, streams: tuple[bytes, ...] | None = None
    ) -> None:
        self.fields = (key, value)
        super().__init__(key, value, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        encode = value_encoder(LogicalType("MAP", fields=self.fields))
        self.read = framed("map", map_reader(*self.fields))
        self.write = lambda items: write_bytes(encode(items))

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        types = [read_stream(cursor, read_logical_type) for _ in range(2)]
        serializers = [read_stream(cursor, read_java_object) for _ in range(2)]
        (key, _), (value, _) = types
        return cls(key, value, tuple(stream for _, stream in types + serializers))

    def contents(self) -> bytes:
        return self.written_streams()


class DecimalDataSerializer(Serializer):
    """A SQL decimal: its unscaled value, 8 bytes, or with over 18 digits a length and bytes."""

    name, versions = "SQL_DECIMAL", (3,)
    snapshot = f"{TABLE}DecimalDataSerializer$DecimalSerializerSnapshot"

    def __init__(self, precision: int, scale: int) -> None:
        self.fields = (LogicalType("DECIMAL", precision=precision, scale=scale),)
        super().__init__(precision, scale)

    def bind(self, reads: Sequence[Read]) -> None:
        [field] = self.fields
        convert = decimal_converter(field)
        scale = -(field.scale or 0)
        if field.reserved:
            self.read = framed(str(field), decimal_reader(field))
            self.write = lambda value: write_bytes(_two_s_complement(convert(value)))
            return

        def read_decimal(data: bytes, pos: int) -> tuple[Decimal, int]:
            unscaled, pos = read_long(data, pos)
            return Decimal(unscaled).scaleb(scale, EXACT), pos

        self.read = read_decimal
        self.write = lambda value: convert(value).to_bytes(8, "big", signed=True)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        precision = cursor.expect("precision", cursor.i32(), *range(1, 39))
        return cls(precision, cursor.expect("scale", cursor.i32(), *range(precision + 1)))

    def contents(self) -> bytes:
        [field] = self.fields
        return i32(field.precision or 0) + i32(field.scale or 0)


def _two_s_complement(number: int) -> bytes:
    """Return the fewest bytes that hold a number and its sign, in big endian.

    JDK: BigInteger.toByteArray.
    """
    size = max(number, ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


class TimestampDataSerializer(Serializer):
    """A SQL timestamp: epoch milliseconds, and beyond precision 3 the nanoseconds above them."""

    name, snapshot, versions = "TIMESTAMP_DATA", class_of(TABLE, "TimestampData"), (1,)

    def __init__(self, precision: int) -> None:
        self.fields = (LogicalType("TIMESTAMP", precision=precision),)
        super().__init__(precision)

    def bind(self, reads: Sequence[Read]) -> None:
        [field] = self.fields
        convert, to_timestamp = self.converter(), timestamp_reader()
        is_compact = not field.reserved
        self.size = 8 if is_compact else 12

        def read_timestamp(data: bytes, pos: int) -> tuple[datetime | TimestampData, int]:
            millis, pos = read_long(data, pos)
            nanos = 0
            if not is_compact:
                nanos, pos = read_int(data, pos)
            return to_timestamp(millis, nanos), pos

        def write_timestamp(value: object) -> bytes:
            data = _pack_timestamp(*convert(value))
            return data[:8] if is_compact else data

        self.read, self.write = read_timestamp, write_timestamp

    def converter(self) -> Callable[[Any], tuple[int, int]]:
        """Return the function from a value to epoch milliseconds and the nanoseconds above."""
        [field] = self.fields
        return timestamp_converter(field)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls(cursor.expect("precision", cursor.i32(), *range(10)))

    def contents(self) -> bytes:
        [field] = self.fields
        return i32(field.precision or 0)


class BinaryRowDataSerializer(Serializer):
    """A SQL row with a known number of fields, and no known types: its bytes are the value."""

    name, snapshot, versions = "BINARY_ROW", class_of(TABLE, "BinaryRowData"), (3,)

    def __init__(self, arity: int) -> None:
        self._arity = arity
        super().__init__(arity)

    def bind(self, reads: Sequence[Read]) -> None:
        least = row_header_size(self._arity) + 8 * self._arity

        def check(row: bytes) -> bytes:
            if len(row) < least:
                raise ValueError(f"{len(row)} bytes are no row of {self._arity} fields")
            return row

        def write_row(value: object) -> bytes:
            data = write_bytes(value)
            if len(data) - 4 < least:
                raise InvalidValueError(
                    f"a row of {self._arity} fields must have at least {least} bytes, got "
                    f"{len(data) - 4}"
                )
            return data

        self.read, self.write = framed("row", check), write_row

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        arity = cursor.i32()
        if arity < 0:
            raise cursor.error(f"a row of {arity} fields")
        return cls(arity)

    def contents(self) -> bytes:
        return i32(self._arity)


class RawValueDataSerializer(Composite):
    """A value of a RAW type, as bytes: a length, then those of the serializer within."""

    name, snapshot, outer_versions = "RAW", class_of(TABLE, "RawValueData"), (0,)
    read, write = staticmethod(read_bytes), staticmethod(write_bytes)

    def __init__(self, inner: Serializer) -> None:
        self._inner = inner
        self.parts = ()  # The serializer within is kept for the snapshot only.
        super().__init__(inner)

    def nested(self) -> tuple[Serializer, ...]:
        return (self._inner,)


class ExternalSerializer(WithStreams, Composite):
    """A value of an external class, which is written, and read here, as an internal one of SQL.

    Two are equal if the internal serializer is, and if both take internal values, or both do not.
    Keys have no key type, since they hash as the external classes do.
    """

    name, snapshot, outer_versions = "EXTERNAL", class_of(TABLE, "External"), (1,)

    def __init__(
        self,
        internal: Serializer,
        is_internal_input: bool,
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.parts = (internal,)
        self.size = internal.size
        self._is_internal_input = is_internal_input
        super().__init__(internal, is_internal_input, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        [self.read] = reads
        [internal] = self.parts
        self.write = partial(check_and_write, internal)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> tuple[bytes, bool]:
        _, stream = read_stream(cursor, read_java_object)  # Flink's DataType
        return stream, cursor.bool()

    @classmethod
    def made_of(
        cls, cursor: Cursor, nested: list[Serializer], outer: tuple[bytes, bool]
    ) -> Serializer:
        [internal] = nested
        stream, is_internal_input = outer
        return cls(internal, is_internal_input, (stream,))

    def outer(self) -> bytes:
        return self.written_streams() + bytes([self._is_internal_input])


def internal_serializer(field: LogicalType) -> Serializer:
    """Return the serializer that Flink SQL takes for a logical type.

    Flink: InternalSerializers.create.
    """
    name = field.name
    if name == "ROW":
        return RowDataSerializer(field.fields)
    if name == "ARRAY":
        [element] = field.fields
        return ArrayDataSerializer(element)
    if name in ("MAP", "MULTISET"):
        return MapDataSerializer(*items_of(field))
    if name == "DECIMAL":
        return DecimalDataSerializer(field.precision or 0, field.scale or 0)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return TimestampDataSerializer(field.precision or 0)
    if name in ("VARIANT", "BITMAP"):
        return REGISTRY[class_of(BASE, name.title())]()
    if name == "RAW":  # The type as text does not carry its serializer.
        return UnknownSerializer(RawValueDataSerializer.snapshot)
    return _INTERNAL[name]


_INTERNAL: dict[str, Serializer] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INT,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "DATE": INT,
    "TIME": INT,
    "INTERVAL_YEAR_MONTH": INT,
    "INTERVAL_DAY_TIME": LONG,
    "CHAR": SQL_STRING,
    "VARCHAR": SQL_STRING,
    "BINARY": BYTES,
    "VARBINARY": BYTES,
}
