"""From the snapshots of serializers, which tell how state was written, to serializers, and back.

A snapshot is the name of its class, a version and contents of no stated length, so a class that
is not known here ends the reading of the header it stands in.
"""

from __future__ import annotations

from collections.abc import Callable

from keygroups._checks import MAX_DEPTH, show
from keygroups._serializers import compounds
from keygroups._serializers import scalars as serializers
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.java_objects import read_java_object
from keygroups._serializers.java_types import read_logical_type
from keygroups._serializers.scalars import Serializer
from keygroups.errors import UnsupportedKeyTypeError

_BASE = "org.apache.flink.api.common.typeutils.base."
_WINDOWS = "org.apache.flink.streaming.api.windowing.windows."
_JAVA = "org.apache.flink.api.java.typeutils.runtime."
_STATE = "org.apache.flink.runtime.state."
_TABLE = "org.apache.flink.table.runtime.typeutils."

_COMPOSITE_MAGIC = 911108
_NESTED_MAGIC = 1333245
_OPTIONAL_MAP_MAGIC = 0x4F2C69A3D70

_SIMPLE = {
    _BASE + f"{name}Serializer${name}SerializerSnapshot": serializer
    for name, serializer in {
        "Boolean": serializers.BOOLEAN,
        "Byte": serializers.BYTE,
        "Char": serializers.CHAR,
        "Double": serializers.DOUBLE,
        "Float": serializers.FLOAT,
        "Int": serializers.INT,
        "Long": serializers.LONG,
        "Short": serializers.SHORT,
        "String": serializers.STRING,
    }.items()
} | {
    f"{_BASE}array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot": (
        serializers.BYTES
    ),
    f"{_STATE}VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot": (
        serializers.VOID_NAMESPACE
    ),
    f"{_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot": serializers.TIME_WINDOW,
    f"{_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot": (
        serializers.GLOBAL_WINDOW
    ),
    f"{_TABLE}StringDataSerializer$StringDataSerializerSnapshot": serializers.SQL_STRING,
    "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot": serializers.NULL,
    "org.apache.flink.streaming.api.utils.ByteArrayWrapperSerializer"
    "$ByteArrayWrapperSerializerSnapshot": serializers.BYTES,
}


def read_serializer(cursor: Cursor) -> Serializer:
    """Read the snapshot of a serializer in a header."""
    cursor.expect("version of a serializer's snapshot", cursor.i32(), 2)
    return read_versioned_snapshot(cursor)


def read_versioned_snapshot(cursor: Cursor, depth: int = 0) -> Serializer:
    """Read a snapshot: class, version, contents."""
    if depth > MAX_DEPTH:
        raise cursor.error(f"serializers nest more than {MAX_DEPTH} deep")
    start = cursor.pos
    name = cursor.utf()
    version = cursor.i32()
    if name in _SIMPLE:
        if cursor.expect(f"version of {name}", version, 2, 3) == 2:
            cursor.utf()
        return _SIMPLE[name]
    if name not in _OTHERS:
        cursor.pos = start
        raise cursor.error(f"the serializer with the snapshot {show(name)} is not known")
    versions, read = _OTHERS[name]
    cursor.expect(f"version of {name}", version, *versions)
    return read(cursor, version, depth)


def _nested(cursor: Cursor, depth: int) -> list[Serializer]:
    cursor.expect("mark of nested serializers", cursor.i32(), _NESTED_MAGIC)
    cursor.expect("version of nested serializers", cursor.i32(), 1)
    return [read_versioned_snapshot(cursor, depth + 1) for _ in range(cursor.count(6))]


def _composite(
    outer_version: int, make: Callable[..., Serializer], arity: int
) -> Callable[[Cursor, int, int], Serializer]:
    """Make what reads a composite with no part of its own and so many serializers in it."""

    def read(cursor: Cursor, version: int, depth: int) -> Serializer:
        _outer(cursor, version, outer_version)
        parts = _nested(cursor, depth)
        cursor.expect("number of nested serializers", len(parts), arity)
        return make(*parts)

    return read


def _outer(cursor: Cursor, version: int, *outer_versions: int) -> int:
    if version > 2:
        cursor.expect("mark of a composite serializer", cursor.i32(), _COMPOSITE_MAGIC)
    return cursor.expect("outer version", cursor.i32(), *outer_versions)


def _tuple(cursor: Cursor, version: int, depth: int) -> Serializer:
    _outer(cursor, version, 2)
    java_class = cursor.utf()
    parts = _nested(cursor, depth)
    if not parts:  # of which any number would fit no bytes; Tuple0 has a serializer of its own
        raise cursor.error("a tuple of no fields is written by no serializer of tuples")
    if java_class == f"org.apache.flink.api.java.tuple.Tuple{len(parts)}":
        return compounds.tuple_of(parts)
    # A class of the job's own, or a Scala case class: written alike, hashed otherwise perhaps.
    return compounds.tuple_of(parts, java_class)


def _row(cursor: Cursor, version: int, depth: int) -> Serializer:
    has_row_kind = _outer(cursor, version, 3, 4) == 3 or cursor.bool()
    parts = _nested(cursor, depth)
    if not parts and not has_row_kind:
        raise cursor.error("a row of no fields and without a row kind has no bytes")
    return compounds.row_of(parts, has_row_kind)


def _external(cursor: Cursor, version: int, depth: int) -> Serializer:
    _outer(cursor, version, 1)
    read_java_object(cursor)  # the DataType, which the serializer nested in it tells of too
    cursor.bool()
    parts = _nested(cursor, depth)
    cursor.expect("number of nested serializers", len(parts), 1)
    return parts[0]


def _row_data(cursor: Cursor, version: int, depth: int) -> Serializer:
    fields = [read_logical_type(cursor) for _ in range(cursor.count(4))]
    _nested(cursor, depth)
    return compounds.sql_row(fields)


def _pojo(cursor: Cursor, version: int, depth: int) -> Serializer:
    java_class = cursor.utf()
    fields = _optional_map(cursor, depth)
    _optional_map(cursor)  # registered subclasses
    _optional_map(cursor)  # subclasses that were met
    if None in fields.values():
        return Serializer("POJO", java_class=java_class)
    parts = [part for part in fields.values() if part is not None]
    return compounds.pojo_of(java_class, tuple(fields), parts)


def _kryo(cursor: Cursor, version: int, depth: int) -> Serializer:
    java_class = cursor.utf()
    for _ in range(3):
        _optional_map(cursor)
    return Serializer("KRYO", java_class=java_class)


def _enum(cursor: Cursor, version: int, depth: int) -> Serializer:
    java_class = cursor.utf()
    return compounds.enum_of(java_class, [cursor.utf() for _ in range(cursor.count(2))])


def _optional_map(cursor: Cursor, depth: int | None = None) -> dict[str, Serializer | None]:
    """Read a map by names; where a depth is given, its values as snapshots."""
    if cursor.i64() != _OPTIONAL_MAP_MAGIC:
        cursor.pos -= 8
        raise cursor.error("a map of a POJO's or Kryo's serializer was to follow")
    found: dict[str, Serializer | None] = {}
    for _ in range(cursor.count(4)):
        name = cursor.utf()
        if cursor.bool():
            cursor.take(cursor.i32())
        found[name] = None
        if cursor.bool():
            value = cursor.frame()
            if depth is not None:
                found[name] = read_versioned_snapshot(value, depth + 1)
    return found


_Reader = Callable[[Cursor, int, int], Serializer]
_OTHERS: dict[str, tuple[tuple[int, ...], _Reader]] = {
    f"{_BASE}ListSerializerSnapshot": ((2, 3), _composite(1, compounds.list_of, 1)),
    f"{_BASE}MapSerializerSnapshot": ((2, 3), _composite(1, compounds.map_of, 2)),
    f"{_STATE}ttl.TtlStateFactory$TtlSerializerSnapshot": (
        (2, 3),
        _composite(2, lambda timestamp, value: compounds.ttl_of(value), 2),
    ),
    "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot": (
        (2, 3),
        _composite(2, compounds.timer_of, 2),
    ),
    f"{_TABLE}RawValueDataSerializer$RawValueDataSerializerSnapshot": (
        (2, 3),
        _composite(0, lambda _: serializers.RAW, 1),
    ),
    f"{_TABLE}ExternalSerializer$ExternalSerializerSnapshot": ((2, 3), _external),
    f"{_JAVA}TupleSerializerSnapshot": ((2, 3), _tuple),
    f"{_JAVA}RowSerializer$RowSerializerSnapshot": ((2, 3), _row),
    f"{_TABLE}RowDataSerializer$RowDataSerializerSnapshot": ((3,), _row_data),
    f"{_JAVA}PojoSerializerSnapshot": ((2,), _pojo),
    f"{_JAVA}kryo.KryoSerializerSnapshot": ((2,), _kryo),
    f"{_BASE}EnumSerializer$EnumSerializerSnapshot": ((1, 2, 3), _enum),
}


# What is written has these versions: those of Flink 1.13 to 2.3.
_SNAPSHOT_VERSION, _SIMPLE_VERSION, _COMPOSITE_VERSION = 2, 3, 3
_SIMPLE_CLASSES = {serializer: name for name, serializer in reversed(_SIMPLE.items())}
_COMPOSITE_CLASSES = {  # with the outer version
    "LIST": (f"{_BASE}ListSerializerSnapshot", 1),
    "MAP": (f"{_BASE}MapSerializerSnapshot", 1),
    "ROW": (f"{_JAVA}RowSerializer$RowSerializerSnapshot", 4),
    "TTL": (f"{_STATE}ttl.TtlStateFactory$TtlSerializerSnapshot", 2),
    "TUPLE": (f"{_JAVA}TupleSerializerSnapshot", 2),
}


def write_serializer(serializer: Serializer) -> bytes:
    """Return the snapshot of a serializer as a header has it.

    Raises UnsupportedKeyTypeError for one whose snapshot only the job's own classes write.
    """
    return i32(_SNAPSHOT_VERSION) + _versioned_snapshot(serializer)


def _versioned_snapshot(serializer: Serializer) -> bytes:
    if serializer in _SIMPLE_CLASSES:
        return utf("snapshot", _SIMPLE_CLASSES[serializer]) + i32(_SIMPLE_VERSION)
    if serializer.name not in _COMPOSITE_CLASSES or serializer.java_class:
        raise UnsupportedKeyTypeError(
            f"the snapshot of the serializer of {serializer} is not known"
        )
    name, outer_version = _COMPOSITE_CLASSES[serializer.name]
    parts = serializer.parts
    outer = b""
    if serializer.name == "TUPLE":
        outer = utf("class", f"org.apache.flink.api.java.tuple.Tuple{len(parts)}")
    elif serializer.name == "ROW":
        outer = b"\1"  # it has the row kind
    elif serializer.name == "TTL":
        parts = (serializers.LONG, *parts)
    return b"".join(
        (
            utf("snapshot", name),
            i32(_COMPOSITE_VERSION),
            i32(_COMPOSITE_MAGIC),
            i32(outer_version),
            outer,
            i32(_NESTED_MAGIC),
            i32(1),
            i32(len(parts)),
            *map(_versioned_snapshot, parts),
        )
    )
