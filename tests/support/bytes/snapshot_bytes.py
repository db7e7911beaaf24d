"""The snapshots of serializers that are read, of each class and in each form."""

from __future__ import annotations

import java_bytes as java
import savepoint_bytes as sb

INT, LONG, STRING = sb.simple("Int"), sb.simple("Long"), sb.simple("String")


def external(inner: bytes) -> bytes:
    data_type = java.stream(java.instance("org.apache.flink.table.types.AtomicDataType"))
    name = f"{sb.TABLE}ExternalSerializer$ExternalSerializerSnapshot"
    return sb.composite(name, 1, [inner], data_type + b"\1")


def row_data(*fields: bytes) -> bytes:
    contents = sb.i32(len(fields)) + b"".join(map(java.stream, fields)) + sb.nested([])
    return sb.snapshot(f"{sb.TABLE}RowDataSerializer$RowDataSerializerSnapshot", 3, contents)


def row(outer_version: int, *parts: bytes, kind: bytes = b"") -> bytes:
    name = f"{sb.JAVA}RowSerializer$RowSerializerSnapshot"
    return sb.composite(name, outer_version, parts, kind)


ENUM = sb.snapshot(
    f"{sb.BASE}EnumSerializer$EnumSerializerSnapshot",
    3,
    sb.utf("a.E") + sb.i32(2) + sb.utf("RED") + sb.utf("GREEN"),
)
BYTES = f"{sb.BASE}array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot"
RAW = f"{sb.TABLE}RawValueDataSerializer$RawValueDataSerializerSnapshot"
WINDOW = f"{sb.WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot"
GLOBAL = f"{sb.WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"
SQL_STRING = f"{sb.TABLE}StringDataSerializer$StringDataSerializerSnapshot"
NULL = "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot"
WRAPPED = (
    "org.apache.flink.streaming.api.utils.ByteArrayWrapperSerializer"
    "$ByteArrayWrapperSerializerSnapshot"
)
AVRO = sb.snapshot(
    "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot",
    2,
    sb.utf("a.R") + sb.utf('{"type":"record","name":"R","namespace":"a","fields":[]}'),
)
SNAPSHOTS = [
    *((sb.simple(name), name.upper()) for name in ("Boolean", "Byte", "Char", "Double", "Float")),
    *((sb.simple(name), name.upper()) for name in ("Int", "Long", "Short", "String")),
    (sb.snapshot(f"{sb.BASE}IntSerializer$IntSerializerSnapshot", 2, sb.utf("name")), "INT"),
    (sb.NONE, "VOID_NAMESPACE"),
    (sb.snapshot(WINDOW, 3), "TIME_WINDOW"),
    (sb.snapshot(GLOBAL, 3), "GLOBAL_WINDOW"),
    (sb.snapshot(SQL_STRING, 3), "SQL_STRING"),
    (sb.snapshot(BYTES, 3), "BYTES"),
    (sb.snapshot(WRAPPED, 3), "BYTES"),
    (sb.snapshot(NULL, 3), "NULL"),
    (sb.composite(RAW, 0, [sb.kryo_of("a.B")]), "RAW"),
    (ENUM, "ENUM(a.E)"),
    (sb.list_of(INT), "LIST(INT)"),
    (sb.ttl_of(LONG), "TTL(LONG)"),
    (sb.map_of(STRING, sb.ttl_of(LONG)), "MAP(STRING, TTL(LONG))"),
    (sb.timer_of(STRING, sb.NONE), "TIMER(STRING, VOID_NAMESPACE)"),
    (sb.tuple_of(INT, sb.tuple_of(STRING)), "TUPLE(INT, TUPLE(STRING))"),
    (sb.tuple_of(INT, java_class="a.Pair"), "TUPLE(a.Pair, INT)"),
    (external(sb.simple("Double")), "DOUBLE"),
    (row(3, INT, STRING), "ROW(INT, STRING)"),
    (row(4, INT, kind=b"\1"), "ROW(INT)"),
    (row(4, INT, kind=b"\0"), "ROW(INT)"),
    (sb.kryo_of("a.B"), "KRYO(a.B)"),
    (sb.pojo_of("a.P", {"id": INT, "e": ENUM}), "POJO(a.P, id INT, e ENUM(a.E))"),
    (sb.pojo_of("a.P", {"id": None}), "POJO(a.P, id UNKNOWN)"),
    (AVRO, "AVRO(a.R)"),
    (row_data(), "SQL_ROW"),
    (
        row_data(
            java.logical_type("VARCHAR", ("length", 2147483647), nullable=False),
            java.logical_type("DECIMAL", ("precision", 10), ("scale", 2)),
        ),
        "SQL_ROW(STRING NOT NULL, DECIMAL(10, 2))",
    ),
]
