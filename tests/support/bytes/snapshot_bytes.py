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


THROWABLE = sb.kryo_of("java.lang.Throwable")
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
RUNTIME = "org.apache.flink.runtime.state."
SINK = "org.apache.flink.streaming.api.functions.sink."
TWO_PHASE = "TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
SINGLE_THREAD = (
    "org.apache.flink.api.common.typeutils.SingleThreadAccessCheckingTypeSerializer"
    "$SingleThreadAccessCheckingTypeSerializerSnapshot"
)
STREAM_ELEMENT = (
    "org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer"
    "$StreamElementSerializerSnapshot"
)
MULTISET = "org.apache.flink.table.runtime.sequencedmultisetstate.linked."
JOIN = "org.apache.flink.streaming.api.operators.co.IntervalJoinOperator"
NULLABLE = f"{sb.JAVA}NullableSerializer$NullableSerializerSnapshot"
COMPOUNDS = [
    (sb.snapshot(f"{sb.JAVA}Tuple0SerializerSnapshot", 3), "TUPLE"),
    (sb.composite(NULLABLE, 2, [INT], sb.i32(4)), "NULLABLE(INT)"),
    (
        sb.composite(f"{sb.JAVA}JavaEitherSerializerSnapshot", 1, [INT, STRING]),
        "EITHER(INT, STRING)",
    ),
    (sb.composite(f"{RUNTIME}ArrayListSerializerSnapshot", 1, [INT]), "LIST(INT)"),
    (sb.composite(f"{sb.BASE}SetSerializerSnapshot", 1, [INT]), "SET(INT)"),
    (
        sb.composite(
            f"{sb.BASE}GenericArraySerializerSnapshot", 1, [LONG], sb.utf("java.lang.Long")
        ),
        "ARRAY(java.lang.Long, LONG)",
    ),
    (
        sb.composite(f"{RUNTIME}v2.ttl.TtlStateFactory$TtlSerializerSnapshot", 2, [LONG, STRING]),
        "TTL(STRING)",
    ),
    (
        sb.snapshot(f"{RUNTIME}ttl.TtlAwareSerializerSnapshot", 1, b"\1" + sb.ttl_of(INT)),
        "TTL_AWARE(TTL(INT))",
    ),
    (sb.composite(SINGLE_THREAD, 1, [INT]), "SINGLE_THREAD(INT)"),
    (
        sb.composite(
            "org.apache.flink.streaming.api.datastream.CoGroupedStreams$UnionSerializerSnapshot",
            2,
            [INT, STRING],
        ),
        "UNION(INT, STRING)",
    ),
    (sb.composite(f"{JOIN}$BufferEntrySerializerSnapshot", 2, [INT]), "BUFFER_ENTRY(INT)"),
    (sb.composite(STREAM_ELEMENT, 2, [INT]), "STREAM_ELEMENT(INT)"),
    *(
        (
            sb.composite(f"{SINK}{package}{TWO_PHASE}", 4, [INT, STRING], b"\0"),
            "TWO_PHASE_COMMIT(INT, STRING)",
        )
        for package in ("", "legacy.")
    ),
    *(
        (
            sb.composite(f"{MULTISET}{name}Serializer${name}SerializerSnapshot", 0, [LONG, LONG]),
            text,
        )
        for name, text in (("MetaSqnInfo", "META_SQN_INFO"), ("RowSqnInfo", "ROW_SQN_INFO"))
    ),
]


def of_scala(package: str) -> list[tuple[bytes, str]]:
    """Return the snapshots of the Scala API, which are in a package of each Flink."""
    name = f"org.apache.flink.{package}.typeutils.".__add__
    return [
        (
            sb.composite(name("ScalaCaseClassSerializerSnapshot"), 2, [INT], sb.utf("a.C")),
            "CASE_CLASS(a.C, INT)",
        ),
        (
            sb.composite(
                name("Tuple2CaseClassSerializerSnapshot"), 2, [INT, INT], sb.utf("scala.Tuple2")
            ),
            "CASE_CLASS(scala.Tuple2, INT, INT)",
        ),
        (sb.composite(name("ScalaOptionSerializerSnapshot"), 2, [INT]), "OPTION(INT)"),
        (sb.composite(name("ScalaEitherSerializerSnapshot"), 1, [INT, LONG]), "EITHER(INT, LONG)"),
        (sb.composite(name("ScalaTrySerializerSnapshot"), 2, [INT, THROWABLE]), "TRY(INT)"),
        (
            sb.composite(name("TraversableSerializerSnapshot"), 2, [INT], sb.utf("code")),
            "TRAVERSABLE(INT)",
        ),
        (
            sb.snapshot(
                name("ScalaEnumSerializerSnapshot"),
                3,
                sb.utf("a.E$") + sb.i32(2) + sb.utf("A") + sb.i32(0) + sb.utf("B") + sb.i32(7),
            ),
            "ENUM(a.E$)",
        ),
        (sb.snapshot(name("UnitSerializer$UnitSerializerSnapshot"), 3), "UNIT"),
        (sb.snapshot(name("NothingSerializerSnapshot"), 3), "NOTHING"),
    ]


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
    (sb.pojo_of("a.P", {"id": None}), "POJO(a.P)"),
    (row_data(), "SQL_ROW"),
    (
        row_data(
            java.logical_type("VARCHAR", ("length", 2147483647), nullable=False),
            java.logical_type("DECIMAL", ("precision", 10), ("scale", 2)),
        ),
        "SQL_ROW(STRING NOT NULL, DECIMAL(10, 2))",
    ),
    *COMPOUNDS,
    *of_scala("api.scala"),
    *of_scala("table.api"),
]
