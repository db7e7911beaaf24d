"""The snapshots of serializers that are read, of each class and in each form."""

from __future__ import annotations

from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.beam_bytes import beam_snapshot, stream

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
PRODUCER = "org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer"
MULTISETS = "org.apache.flink.table.runtime.sequencedmultisetstate.linked."
SINGLE_THREAD = (
    "org.apache.flink.api.common.typeutils.SingleThreadAccessCheckingTypeSerializer"
    "$SingleThreadAccessCheckingTypeSerializerSnapshot"
)
STREAM_ELEMENT = (
    "org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer"
    "$StreamElementSerializerSnapshot"
)

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
        (sb.snapshot(f"{PRODUCER}{old}${name}Serializer${name}SerializerSnapshot", 3), text)
        for old in ("", "011")
        for name, text in (
            ("TransactionState", "KAFKA_TRANSACTION"),
            ("ContextState", "KAFKA_TRANSACTION_CONTEXT"),
            ("NextTransactionalIdHint", "KAFKA_TRANSACTION_HINT"),
        )
    ),
    *(
        (
            sb.composite(f"{MULTISETS}{name}Serializer${name}SerializerSnapshot", 0, [LONG, LONG]),
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


TYPE = java.stream(java.logical_type("BIGINT"))
TEXT = java.stream(java.logical_type("VARCHAR", ("length", 5)))
A_SERIALIZER = java.stream(java.instance("a.Serializer"))
VIEWS = "org.apache.flink.table.dataview."
PYTHON = f"{sb.TABLE}serializers.python."


def of_table(name: str, version: int, contents: bytes, package: str = sb.TABLE) -> bytes:
    return sb.snapshot(f"{package}{name}Serializer${name}SerializerSnapshot", version, contents)


def of_views(name: str, *parts: bytes) -> bytes:
    return sb.composite(f"{VIEWS}{name}SerializerSnapshot", 1, parts)


def java_serializer(name: str) -> bytes:
    """A serializer as a Java object, by the name of its class."""
    return java.stream(java.instance(f"{name}Serializer"))


COMPARATOR = java.stream(java.instance("a.Comparator"))
CODE = sb.i32(3) + b"abc"
SQL_SNAPSHOTS = [
    (of_table("ArrayData", 3, TYPE + A_SERIALIZER), "SQL_ARRAY(BIGINT)"),
    (of_table("MapData", 3, TEXT + TYPE + A_SERIALIZER * 2), "SQL_MAP(VARCHAR(5), BIGINT)"),
    (
        sb.snapshot(
            f"{sb.TABLE}DecimalDataSerializer$DecimalSerializerSnapshot", 3, sb.i32(20, 2)
        ),
        "SQL_DECIMAL(DECIMAL(20, 2))",
    ),
    (of_table("TimestampData", 1, sb.i32(3)), "TIMESTAMP_DATA(TIMESTAMP(3))"),
    (of_table("BinaryRowData", 3, sb.i32(2)), "BINARY_ROW"),
    (
        sb.composite(
            f"{sb.TABLE}LinkedListSerializer$LinkedListSerializerSnapshot", 3, [INT], b"\1"
        ),
        "LINKED_LIST(INT)",
    ),
    (
        sb.composite(f"{sb.TABLE}WindowKeySerializer$WindowKeySerializerSnapshot", 1, [INT]),
        "WINDOW_KEY(INT)",
    ),
    (
        sb.snapshot(
            f"{sb.TABLE}SortedMapSerializerSnapshot", 3, COMPARATOR + sb.nested([INT, STRING])
        ),
        "SORTED_MAP(a.Comparator, INT, STRING)",
    ),
    (of_views("ListView", sb.list_of(INT)), "LIST_VIEW(LIST(INT))"),
    (of_views("MapView", sb.map_of(INT, LONG)), "MAP_VIEW(MAP(INT, LONG))"),
    (of_views("NullAwareMap", INT, LONG), "NULL_AWARE_MAP(INT, LONG)"),
    (
        sb.composite(f"{MULTISETS}NodeSerializer$NodeSerializerSnapshot", 0, [INT] + [LONG] * 5),
        "MULTISET_NODE(INT, LONG, LONG, LONG, LONG, LONG)",
    ),
    (
        sb.snapshot(f"{MULTISETS}RowDataKeySerializerSnapshot", 0, CODE + CODE + row_data()),
        "MULTISET_KEY(SQL_ROW)",
    ),
    (
        of_table("ArrayData", 1, TYPE + java_serializer(f"{sb.BASE}Long"), PYTHON),
        "PYTHON_ARRAY(SQL_VALUE(LONG, BIGINT))",
    ),
    (
        sb.snapshot(
            f"{PYTHON}MapDataSerializer$BaseMapSerializerSnapshot",
            1,
            TEXT
            + TYPE
            + java_serializer(f"{sb.TABLE}StringData")
            + java_serializer(f"{sb.BASE}Long"),
        ),
        "PYTHON_MAP(SQL_VALUE(SQL_STRING, VARCHAR(5)), SQL_VALUE(LONG, BIGINT))",
    ),
    (
        of_table("RowData", 3, sb.i32(1) + TYPE + sb.nested([LONG]), PYTHON),
        "PYTHON_ROW(SQL_VALUE(LONG, BIGINT))",
    ),
]


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
    (sb.snapshot(WRAPPED, 3), "BYTE_ARRAY_WRAPPER"),
    (sb.snapshot(NULL, 3), "NULL"),
    (sb.composite(RAW, 0, [sb.kryo_of("a.B")]), "RAW"),
    (ENUM, "ENUM(a.E)"),
    (sb.list_of(INT), "LIST(INT)"),
    (sb.ttl_of(LONG), "TTL(LONG)"),
    (sb.map_of(STRING, sb.ttl_of(LONG)), "MAP(STRING, TTL(LONG))"),
    (sb.timer_of(STRING, sb.NONE), "TIMER(STRING, VOID_NAMESPACE)"),
    (sb.tuple_of(INT, sb.tuple_of(STRING)), "TUPLE(INT, TUPLE(STRING))"),
    (sb.tuple_of(INT, java_class="a.Pair"), "TUPLE(a.Pair, INT)"),
    (external(sb.simple("Double")), "EXTERNAL(DOUBLE)"),
    (row(3, INT, STRING), "ROW(INT, STRING)"),
    (row(4, INT, kind=b"\1"), "ROW(INT)"),
    (row(4, INT, kind=b"\0"), "ROW(INT)"),
    (sb.kryo_of("a.B"), "KRYO(a.B)"),
    (sb.pojo_of("a.P", {"id": INT, "e": ENUM}), "POJO(a.P, id INT, e ENUM(a.E))"),
    (sb.pojo_of("a.P", {"id": None}), "POJO(a.P, id UNKNOWN)"),
    (AVRO, "AVRO(a.R)"),
    (beam_snapshot(stream(java.instance("a.Coder"))), "BEAM(a.Coder)"),
    (beam_snapshot(stream(java.instance("a.Coder")), is_legacy=False), "BEAM(a.Coder)"),
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
    *SQL_SNAPSHOTS,
]
