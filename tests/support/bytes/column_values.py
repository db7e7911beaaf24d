"""Values of every serializer, with Spark's type for them and what they are in a row of it."""

from __future__ import annotations

import datetime as dt
from array import array
from decimal import Decimal
from typing import Any

from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import (
    GlobalWindow,
    Row,
    TimestampData,
    TimeWindow,
    TtlValue,
)
from keygroups.savepoint.sinks import KafkaTransaction
from keygroups.savepoint.values import (
    Bitmap,
    BufferEntry,
    ComputationState,
    CountWindow,
    DeweyNumber,
    EventId,
    Failure,
    Left,
    LocalTime,
    Lockable,
    MetaSqnInfo,
    NextTransactionalIdHint,
    NFAState,
    Node,
    NodeId,
    Pojo,
    Right,
    RowSqnInfo,
    SharedBufferEdge,
    SharedBufferNode,
    Some,
    StreamRecord,
    Success,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
    Variant,
    WindowKey,
)
from keygroups.state_keys import BYTES, GLOBAL_WINDOW, VOID_NAMESPACE, Serializer
from support.bytes.sink_bytes import of_producers
from support.inside.serializers import (
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NULL,
    SHORT,
    STRING,
    ArrayDataSerializer,
    ArrayListSerializer,
    AsyncTtlSerializer,
    BigDecSerializer,
    BigIntSerializer,
    BinaryRowDataSerializer,
    BitmapSerializer,
    BooleanPrimitiveArraySerializer,
    BufferEntrySerializer,
    CaseClassSerializer,
    CharPrimitiveArraySerializer,
    CharValueSerializer,
    CopyableValueSerializer,
    CountWindowSerializer,
    DecimalDataSerializer,
    DeweyNumberSerializer,
    DoublePrimitiveArraySerializer,
    EitherSerializer,
    EnumSerializer,
    EventIdSerializer,
    ExternalSerializer,
    FloatPrimitiveArraySerializer,
    GenericArraySerializer,
    IntValueSerializer,
    JavaSerializer,
    KryoSerializer,
    LinkedListSerializer,
    ListSerializer,
    ListViewSerializer,
    LocalDateSerializer,
    LocalDateTimeSerializer,
    LocalTimeSerializer,
    LockableTypeSerializer,
    LongPrimitiveArraySerializer,
    MapDataSerializer,
    MapSerializer,
    Member,
    MetaSqnInfoSerializer,
    NFAStateSerializer,
    NodeIdSerializer,
    NodeSerializer,
    NothingSerializer,
    NullableSerializer,
    NullValueSerializer,
    OptionSerializer,
    PojoSerializer,
    PythonBigDecSerializer,
    PythonDateSerializer,
    PythonDecimalSerializer,
    PythonRowSerializer,
    PythonStringSerializer,
    PythonTimeSerializer,
    PythonTimestampSerializer,
    RowDataSerializer,
    RowSerializer,
    RowSqnInfoSerializer,
    ScalaEnumSerializer,
    SetSerializer,
    SharedBufferEdgeSerializer,
    SharedBufferNodeSerializer,
    ShortPrimitiveArraySerializer,
    SingleThreadAccessCheckingSerializer,
    SortedLongSerializer,
    SortedMapSerializer,
    StreamElementSerializer,
    StringArraySerializer,
    TableGlobalWindowSerializer,
    TableTimeWindowSerializer,
    TimestampDataSerializer,
    TraversableSerializer,
    TrySerializer,
    TtlAwareSerializer,
    Tuple0Serializer,
    TupleSerializer,
    TwoPhaseCommitSerializer,
    UnionSerializer,
    UnitSerializer,
    ValueSerializer,
    VariantSerializer,
    VoidSerializer,
    WindowKeySerializer,
)

UTC = dt.timezone.utc
NO_NUMBERS = bytes.fromhex("3a30000000000000")  # the portable format: the cookie, 0 containers
EDGE = SharedBufferEdgeSerializer(NodeIdSerializer(EventIdSerializer()), DeweyNumberSerializer())
NODE_ID = NodeId(EventId(7, 5), "page")
VALUES: list[tuple[Serializer, str, list[tuple[Any, Any]]]] = [
    (FLOAT, "float", [(1.5, 1.5), (float("-inf"), float("-inf")), (None, None)]),
    (CHAR, "string", [("a", "a"), ("\xe9", "\xe9")]),
    (SHORT, "smallint", [(-(2**15), -(2**15))]),
    (BYTES, "binary", [(b"", b""), (b"\0\xff", b"\0\xff"), (None, None)]),
    (NULL, "", []),
    (VOID_NAMESPACE, "", []),
    (KryoSerializer("a.B"), "binary", [(b"\1", b"\1")]),
    (EnumSerializer("a.B", ["ON", "OFF"]), "string", [("ON", "ON")]),
    (GLOBAL_WINDOW, "string", [(GlobalWindow(), "GlobalWindow")]),
    (TupleSerializer([LONG, NULL]), "struct<f0:bigint,f1:string>", [((1, None), (1, None))]),
    (
        RowSerializer([INT, ListSerializer(STRING)]),
        "struct<f0:int,f1:array<string>,row_kind:string>",
        [(Row((1, None), "-U"), (1, None, "-U")), (Row((None, ["a"])), (None, ["a"], "+I"))],
    ),
    (
        PojoSerializer("a.B", ["id", "tags"], [INT, ListSerializer(TupleSerializer([INT, INT]))]),
        "struct<id:int,tags:array<struct<f0:int,f1:int>>>",
        [
            (Pojo("a.B", {"id": 1, "tags": [(1, 2), (3, 4)]}), (1, [(1, 2), (3, 4)])),
            (None, None),
        ],
    ),
    (
        MapSerializer(STRING, PojoSerializer("a.B", ["id"], [INT])),
        "map<string,struct<id:int>>",
        [({"a": Pojo("a.B", {"id": 1}), "b": None}, {"a": (1,), "b": None}), ({}, {})],
    ),
    (
        ListSerializer(ListSerializer(GLOBAL_WINDOW)),
        "array<array<string>>",
        [([[], [GlobalWindow()]], [[], ["GlobalWindow"]]), ([], [])],
    ),
    (
        RowDataSerializer([parse_logical_type("DECIMAL(38, 10)")]),
        "struct<f0:decimal(38,10),row_kind:string>",
        [
            (Row((Decimal("1.5000000000"),), "-D"), (Decimal("1.5"), "-D")),
            (Row((None,)), (None, "+I")),
        ],
    ),
    (
        RowDataSerializer([parse_logical_type("DATE"), parse_logical_type("TIME(3)")]),
        "struct<f0:date,f1:int,row_kind:string>",
        [
            (
                Row((dt.date(1, 1, 1), dt.time(1, 2, 3, 4000))),
                (dt.date(1, 1, 1), 3_723_004, "+I"),
            ),
            (
                Row((dt.date(9999, 12, 31), 2**31 - 1), "+U"),
                (dt.date(9999, 12, 31), 2**31 - 1, "+U"),
            ),
        ],
    ),
    (
        RowDataSerializer(
            [parse_logical_type("TIMESTAMP(6)"), parse_logical_type("TIMESTAMP(3)")]
        ),
        "struct<f0:timestamp_ntz,f1:timestamp_ntz,row_kind:string>",
        [
            (
                Row((dt.datetime(1900, 1, 1, 0, 0, 0, 1), None)),
                (dt.datetime(1900, 1, 1, 0, 0, 0, 1), None, "+I"),
            )
        ],
    ),
    (
        RowDataSerializer(
            [parse_logical_type("TIMESTAMP(9)"), parse_logical_type("TIMESTAMP_LTZ(9)")]
        ),
        "struct<f0:struct<millisecond:bigint,nano_of_millisecond:int>,"
        "f1:struct<millisecond:bigint,nano_of_millisecond:int>,row_kind:string>",
        [
            (Row((TimestampData(-1, 999_999), None)), ((-1, 999_999), None, "+I")),
            (
                Row(
                    (
                        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
                        dt.datetime(2024, 1, 1, tzinfo=UTC),
                    )
                ),
                ((-1, 999_000), (1_704_067_200_000, 0), "+I"),
            ),
        ],
    ),
    (
        RowDataSerializer(
            [parse_logical_type("ARRAY<ROW<INT, BINARY(2)>>"), parse_logical_type("BYTES")]
        ),
        "struct<f0:array<struct<f0:int,f1:binary,row_kind:string>>,f1:binary,row_kind:string>",
        [(Row(([Row((1, b"ab"), "-U"), None], b"c")), ([(1, b"ab", "-U"), None], b"c", "+I"))],
    ),
    (
        RowDataSerializer(
            [
                LogicalType("MULTISET", fields=(parse_logical_type("DATE"),)),
                LogicalType("VARIANT"),
                LogicalType("INTERVAL_YEAR_MONTH"),
                LogicalType("INTERVAL_DAY_TIME"),
                LogicalType("RAW"),
            ]
        ),
        "struct<f0:map<date,int>,f1:struct<value:binary,metadata:binary>,f2:int,f3:bigint,"
        "f4:binary,row_kind:string>",
        [
            (
                Row(({dt.date(1, 1, 1): 2}, Variant(b"v", b"\1"), -5, 2**40, b"r")),
                ({dt.date(1, 1, 1): 2}, (b"v", b"\1"), -5, 2**40, b"r", "+I"),
            ),
            (Row((None,) * 5), (*(None,) * 5, "+I")),
        ],
    ),
    (
        MapDataSerializer(parse_logical_type("STRING"), parse_logical_type("ARRAY<INT>")),
        "map<string,array<int>>",
        [({"a": [1, None], "b": None}, {"a": [1, None], "b": None}), ({}, {})],
    ),
    (ArrayDataSerializer(parse_logical_type("BIGINT")), "array<bigint>", [([1, None], [1, None])]),
    (DecimalDataSerializer(5, 2), "decimal(5,2)", [(Decimal("1.50"), Decimal("1.50"))]),
    (TimestampDataSerializer(3), "timestamp_ntz", [(dt.datetime(1, 1, 1), dt.datetime(1, 1, 1))]),
    (BinaryRowDataSerializer(0), "binary", [(bytes(8), bytes(8))]),
    (ExternalSerializer(INT, False), "int", [(5, 5)]),
    (LinkedListSerializer(INT), "array<int>", [([1, None], [1, None])]),
    (SortedMapSerializer("a.B", INT, STRING), "map<int,string>", [({1: "a"}, {1: "a"})]),
    (ListViewSerializer(ListSerializer(INT)), "array<int>", [([1], [1])]),
    (
        WindowKeySerializer(RowDataSerializer([parse_logical_type("INT")])),
        "struct<window:bigint,key:struct<f0:int,row_kind:string>>",
        [(WindowKey(5, Row((1,))), (5, (1, "+I")))],
    ),
    (
        PythonRowSerializer((parse_logical_type("DATE"),), (INT,)),
        "struct<f0:date,row_kind:string>",
        [(Row((dt.date(1, 1, 1),)), (dt.date(1, 1, 1), "+I"))],
    ),
    (
        BigDecSerializer(),
        "string",
        [
            # As the examples of the JDK's documentation of BigDecimal.toString say.
            (Decimal("123"), "123"),
            (Decimal("-1.230E+5"), "-1.230E+5"),
            (Decimal("12.3E+7"), "1.23E+8"),
            (Decimal("0.00001234"), "0.00001234"),
            (Decimal((0, (1, 2, 3), -12)), "1.23E-10"),
            (None, None),
        ],
    ),
    (BigIntSerializer(), "string", [(-(10**40), "-1" + "0" * 40), (10**5_000, "1" + "0" * 5_000)]),
    (SortedLongSerializer(), "bigint", [(-1, -1)]),
    (CountWindowSerializer(), "struct<id:bigint>", [(CountWindow(5), (5,))]),
    (
        TableTimeWindowSerializer(),
        "struct<start:bigint,end:bigint>",
        [(TimeWindow(-1, 5), (-1, 5))],
    ),
    (TableGlobalWindowSerializer(), "string", [(GlobalWindow(), "GlobalWindow")]),
    (NullValueSerializer(), "", []),
    (VoidSerializer(), "", []),
    (IntValueSerializer(), "int", [(5, 5)]),
    (CharValueSerializer(), "string", [("a", "a")]),
    (ValueSerializer("org.apache.flink.types.DoubleValue"), "double", [(0.5, 0.5)]),
    (CopyableValueSerializer("a.B"), "binary", [(b"\1", b"\1")]),
    (CharPrimitiveArraySerializer(), "array<int>", [(array("H", [0, 65_535]), [0, 65_535])]),
    (ShortPrimitiveArraySerializer(), "array<smallint>", [(array("h", [-1]), [-1])]),
    (LongPrimitiveArraySerializer(), "array<bigint>", [(array("q"), []), (None, None)]),
    (FloatPrimitiveArraySerializer(), "array<float>", [(array("f", [1.5]), [1.5])]),
    (DoublePrimitiveArraySerializer(), "array<double>", [(array("d", [0.1]), [0.1])]),
    (BooleanPrimitiveArraySerializer(), "array<boolean>", [([True, False], [True, False])]),
    (StringArraySerializer(), "array<string>", [(["a", None], ["a", None])]),
    (LocalDateSerializer(), "date", [(dt.date(9999, 12, 31), dt.date(9999, 12, 31))]),
    (
        LocalTimeSerializer(),
        "bigint",
        [
            (dt.time(1, 2, 3, 4), 3_723_000_004_000),
            (LocalTime(23, 59, 59, 999_999_999), 86_399_999_999_999),
        ],
    ),
    (
        LocalDateTimeSerializer(),
        "timestamp_ntz",
        [(dt.datetime(1, 1, 1, 0, 0, 0, 1), dt.datetime(1, 1, 1, 0, 0, 0, 1))],
    ),
    (JavaSerializer(), "string", [("a", "'a'"), (5, "5"), ([1.5], "[1.5]")]),
    (
        VariantSerializer(),
        "struct<value:binary,metadata:binary>",
        [(Variant(b"v", b"\1"), (b"v", b"\1"))],
    ),
    (BitmapSerializer(), "binary", [(Bitmap(NO_NUMBERS), NO_NUMBERS)]),
    (
        SetSerializer(SetSerializer(STRING)),
        "array<array<string>>",
        [
            ({frozenset({"b", "a"}), frozenset()}, [[], ["a", "b"]]),
            ({None}, [None]),
            (set(), []),
        ],
    ),
    (SetSerializer(STRING), "array<string>", [({"b", None, "a"}, ["a", "b", None])]),
    (SetSerializer(DOUBLE), "array<double>", [([0.0, -0.0], [0.0, -0.0])]),
    (GenericArraySerializer("a.B", LONG), "array<bigint>", [([1, None], [1, None])]),
    (ArrayListSerializer(INT), "array<int>", [([1], [1])]),
    (NullableSerializer(INT), "int", [(1, 1), (None, None)]),
    (
        EitherSerializer(STRING, INT),
        "struct<is_left:boolean,left:string,right:int>",
        [
            (Left("a"), (True, "a", None)),
            (Left(None), (True, None, None)),
            (Right(1), (False, None, 1)),
        ],
    ),
    (Tuple0Serializer(), "struct<>", [((), ())]),
    (
        CaseClassSerializer([LONG, STRING], "a.B"),
        "struct<f0:bigint,f1:string>",
        [((1, "a"), (1, "a"))],
    ),
    (OptionSerializer(INT), "int", [(Some(1), 1), (None, None)]),
    (
        TrySerializer(INT, KryoSerializer("java.lang.Throwable")),
        "struct<value:int,java_class:string,data:binary>",
        [(Success(1), (1, None, None)), (Failure("a.B", b"\1"), (None, "a.B", b"\1"))],
    ),
    (TraversableSerializer("code", INT), "array<int>", [([1, None], [1, None])]),
    (ScalaEnumSerializer("a.B", [("ON", 1)]), "string", [("ON", "ON")]),
    (UnitSerializer(), "struct<>", [((), ())]),
    (NothingSerializer(), "", []),
    (TtlAwareSerializer(INT, False), "int", [(1, 1)]),
    (SingleThreadAccessCheckingSerializer(INT), "int", [(1, 1)]),
    (
        AsyncTtlSerializer(INT),
        "struct<last_access:bigint,value:int>",
        [(TtlValue(5, 1), (5, 1))],
    ),
    (
        UnionSerializer(STRING, INT),
        "struct<input:int,value_1:string,value_2:int>",
        [(TaggedUnion(1, "a"), (1, "a", None)), (TaggedUnion(2, 5), (2, None, 5))],
    ),
    (
        ListSerializer(BufferEntrySerializer(INT)),
        "array<struct<element:int,has_been_joined:boolean>>",
        [([BufferEntry(1, True), None], [(1, True), None])],
    ),
    (
        StreamElementSerializer(INT),
        "string",
        [(StreamRecord(1, 5), "StreamRecord(value=1, timestamp=5)")],
    ),
    (
        TwoPhaseCommitSerializer(STRING, INT),
        "struct<pending_transaction:struct<handle:string,transaction_start_time:bigint>,"
        "pending_commit_transactions:array<struct<handle:string,transaction_start_time:bigint>>,"
        "context:int>",
        [
            (
                TwoPhaseCommitState(None, [TransactionHolder("a", 5)], Some(1)),
                (None, [("a", 5)], 1),
            )
        ],
    ),
    *(
        (
            made,
            "struct<transactional_id:string,producer_id:bigint,epoch:smallint>",
            [
                (KafkaTransaction("a", 1000, 1), ("a", 1000, 1)),
                (KafkaTransaction(None, -1, -1), (None, -1, -1)),
            ],
        )
        for made in of_producers("TransactionState")
    ),
    *(
        (made, "array<string>", [(["b", "a"], ["b", "a"]), ([], [])])
        for made in of_producers("ContextState")
    ),
    *(
        (
            made,
            "struct<next_free_transactional_id:bigint,last_parallelism:int>",
            [(NextTransactionalIdHint(5, 1), (5, 1))],
        )
        for made in of_producers("NextTransactionalIdHint")
    ),
    (
        MetaSqnInfoSerializer(),
        "struct<high_sqn:bigint,size:bigint>",
        [(MetaSqnInfo(1, 2), (1, 2))],
    ),
    (
        RowSqnInfoSerializer(),
        "struct<first_sqn:bigint,last_sqn:bigint>",
        [(RowSqnInfo(1, 2), (1, 2))],
    ),
    (
        NodeSerializer(STRING, LONG, LONG, LONG, LONG, LONG),
        "struct<row:string,sqn:bigint,prev_sqn:bigint,next_sqn:bigint,"
        "next_sqn_for_record:bigint,timestamp:bigint>",
        [(Node("a", 1, None, 2, None, 5), ("a", 1, None, 2, None, 5))],
    ),
    (
        LockableTypeSerializer(STRING),
        "struct<reference_count:int,element:string>",
        [(Lockable(1, "a"), (1, "a"))],
    ),
    (
        SharedBufferNodeSerializer(EDGE),
        "struct<edges:array<struct<reference_count:int,element:struct<target:struct<event_id:"
        "struct<id:int,timestamp:bigint>,page_name:string>,version:array<int>>>>>",
        [
            (
                SharedBufferNode(
                    [
                        Lockable(2, SharedBufferEdge(None, DeweyNumber((1, 0)))),
                        Lockable(1, SharedBufferEdge(NODE_ID, DeweyNumber(()))),
                    ]
                ),
                ([(2, (None, [1, 0])), (1, (((7, 5), "page"), []))],),
            )
        ],
    ),
    (
        NFAStateSerializer(DeweyNumberSerializer(), EDGE.parts[0], EventIdSerializer()),
        "struct<partial_matches:MATCHES,completed_matches:MATCHES>".replace(
            "MATCHES",
            "array<struct<state_name:string,previous_buffer_entry:struct<event_id:struct<id:int,"
            "timestamp:bigint>,page_name:string>,version:array<int>,start_timestamp:bigint,"
            "previous_timestamp:bigint,start_event:struct<id:int,timestamp:bigint>>>",
        ),
        [
            (
                NFAState(
                    [
                        ComputationState("a", NODE_ID, DeweyNumber((1,)), 5, 6, EventId(7, 5)),
                        ComputationState("b", None, DeweyNumber((2,)), 5, None, None),
                    ],
                    [],
                ),
                (
                    [
                        ("a", ((7, 5), "page"), [1], 5, 6, (7, 5)),
                        ("b", None, [2], 5, None, None),
                    ],
                    [],
                ),
            )
        ],
    ),
    (PythonBigDecSerializer(), "string", [(Decimal("1.50"), "1.50")]),
    (PythonDecimalSerializer(5, 2), "decimal(5,2)", [(Decimal("1.50"), Decimal("1.50"))]),
    (PythonStringSerializer(), "string", [("a", "a")]),
    (PythonDateSerializer(), "date", [(dt.date(1, 1, 1), dt.date(1, 1, 1))]),
    (PythonTimeSerializer(), "int", [(dt.time(0, 0, 1), 1_000), (-5, -5)]),
    (
        PythonTimestampSerializer(9),
        "struct<millisecond:bigint,nano_of_millisecond:int>",
        [(TimestampData(5, 999_999), (5, 999_999))],
    ),
    (
        TupleSerializer([INT, KryoSerializer("java.util.List")]),
        "string",
        [((1, ["a"]), "(1, ['a'])"), (None, None)],
    ),
    (
        PojoSerializer("a.B", ["id"], [INT], met=[Member("a.C", None, PojoSerializer("a.C"))]),
        "string",
        [(Pojo("a.C", {}), "Pojo('a.C', {})")],
    ),
]
