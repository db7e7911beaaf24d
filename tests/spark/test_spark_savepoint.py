"""Keyed state of real savepoints as DataFrames, against the same read without Spark."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
import savepoint_bytes as sb
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from real_savepoints import POINTS, Point, point
from selections import first_by_default
from serializer_cases import cases

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, assign_to_key_group
from keygroups._serializers.arrays import (
    BooleanPrimitiveArraySerializer,
    CharPrimitiveArraySerializer,
    DoublePrimitiveArraySerializer,
    FloatPrimitiveArraySerializer,
    LongPrimitiveArraySerializer,
    ShortPrimitiveArraySerializer,
    StringArraySerializer,
)
from keygroups._serializers.avro import AvroSerializer
from keygroups._serializers.base import REGISTRY, Serializer
from keygroups._serializers.big_numbers import BigDecSerializer, BigIntSerializer
from keygroups._serializers.cep import (
    DeweyNumberSerializer,
    EventIdSerializer,
    LockableTypeSerializer,
    NFAStateSerializer,
    NodeIdSerializer,
    SharedBufferEdgeSerializer,
    SharedBufferNodeSerializer,
)
from keygroups._serializers.collections import (
    ArrayListSerializer,
    GenericArraySerializer,
    ListSerializer,
    MapSerializer,
    SetSerializer,
)
from keygroups._serializers.compounds import (
    EitherSerializer,
    EnumSerializer,
    NullableSerializer,
    RowSerializer,
    Tuple0Serializer,
    TupleSerializer,
)
from keygroups._serializers.encoded import BitmapSerializer, JavaSerializer, VariantSerializer
from keygroups._serializers.java_time import (
    DateSerializer,
    InstantSerializer,
    LocalDateSerializer,
    LocalDateTimeSerializer,
    LocalTimeSerializer,
    SqlDateSerializer,
    SqlTimeSerializer,
    SqlTimestampSerializer,
)
from keygroups._serializers.kryo import KryoSerializer
from keygroups._serializers.pojos import Member, PojoSerializer
from keygroups._serializers.python_rows import PythonRowSerializer
from keygroups._serializers.python_sql import (
    PythonBigDecSerializer,
    PythonDateSerializer,
    PythonDecimalSerializer,
    PythonStringSerializer,
    PythonTimeSerializer,
    PythonTimestampSerializer,
)
from keygroups._serializers.scala import (
    CaseClassSerializer,
    NothingSerializer,
    OptionSerializer,
    ScalaEnumSerializer,
    TraversableSerializer,
    TrySerializer,
    UnitSerializer,
)
from keygroups._serializers.scalars import (
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    GLOBAL_WINDOW,
    INT,
    LONG,
    NULL,
    SHORT,
    STRING,
    VOID_NAMESPACE,
    CountWindowSerializer,
    NullValueSerializer,
    SortedLongSerializer,
    TableGlobalWindowSerializer,
    TableTimeWindowSerializer,
    VoidSerializer,
)
from keygroups._serializers.sql_rows import (
    ArrayDataSerializer,
    BinaryRowDataSerializer,
    DecimalDataSerializer,
    ExternalSerializer,
    MapDataSerializer,
    RawValueDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)
from keygroups._serializers.streaming import (
    AsyncTtlSerializer,
    BufferEntrySerializer,
    MetaSqnInfoSerializer,
    RowSqnInfoSerializer,
    SingleThreadAccessCheckingSerializer,
    StreamElementSerializer,
    TimerSerializer,
    TtlAwareSerializer,
    TwoPhaseCommitSerializer,
    UnionSerializer,
)
from keygroups._serializers.table_runtime import (
    LinkedListSerializer,
    ListViewSerializer,
    NodeSerializer,
    SortedMapSerializer,
    WindowKeySerializer,
)
from keygroups._serializers.value_types import (
    CharValueSerializer,
    CopyableValueSerializer,
    IntValueSerializer,
    ValueSerializer,
)
from keygroups._values.bitmaps import Bitmap
from keygroups._values.cep import (
    ComputationState,
    DeweyNumber,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)
from keygroups._values.java_values import (
    Failure,
    Instant,
    Left,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Pojo,
    Right,
    Some,
    Success,
    Variant,
)
from keygroups._values.sql import CountWindow, MetaSqnInfo, Node, RowSqnInfo, WindowKey
from keygroups._values.streaming import (
    BufferEntry,
    StreamRecord,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
)
from keygroups.errors import SavepointError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import (
    GlobalWindow,
    Operator,
    Row,
    StateDescriptor,
    StateEntry,
    TimestampData,
    TimeWindow,
    TtlValue,
    read_savepoint,
)
from keygroups.savepoint._metadata.handles import KeyGroupsHandle
from keygroups.spark import change_max_parallelism, read_keyed_state, register_data_source
from keygroups.spark import savepoint as spark_savepoint
from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._savepoint.batches import layout_of
from keygroups.spark._savepoint.column_types import COLUMNS, column_of, key_column_of
from keygroups.spark._savepoint.tasks import parse_key_groups, read_tasks
from keygroups.types import LONG as LONG_TYPE

TYPED = {"key": 4, "namespace": 5, "user_key": 6, "value": 7}  # where an entry has them
HEAP = point("2.3.0-heap-canonical")
QUERY_FAILS = (PySparkException, Py4JJavaError)
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def formatted(spark: SparkSession) -> SparkSession:
    """A session that has the data source."""
    if spark.version < "4":
        pytest.skip("Spark has data sources in Python from 4.0")
    if find_spec("pyarrow") is None:
        pytest.skip("pyarrow is not installed, which data sources in Python need")
    assert register_data_source(spark) == "flink-state"
    return spark


# --- entries as the rows should be ------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value of an entry, or of a row, as what can be hashed and is equal only to itself.

    Structs are tuples, whatever their fields' names, floats told apart by their bits.
    """
    if isinstance(value, GlobalWindow):
        return plain("GlobalWindow")
    if isinstance(value, Row):
        return tuple(map(plain, (*value, value.row_kind)))
    if isinstance(value, T.Row) or type(value) in (tuple, TtlValue, TimeWindow):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return "list", *map(plain, value)
    if isinstance(value, dict):
        return "map", frozenset((plain(key), plain(nested)) for key, nested in value.items())
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bytearray):
        return plain(bytes(value))
    return type(value).__name__, value


def plain_entry(entry: StateEntry, states: dict[str, StateDescriptor]) -> tuple[Any, ...]:
    key, namespace, user_key, value = entry[4:8]
    serializer = states[entry.state].value_serializer
    if isinstance(value, Pojo):
        value = tuple(value._asdict().values())
    if serializer is not None and serializer.name == "KRYO" and value is not None:
        value = repr(value)
    if isinstance(key, Pojo):
        key = tuple(key._asdict().values())
    if states[entry.state].key_serializer.name == "SQL_ROW":  # whose column has no row_kind
        assert key.row_kind == "+I"
        key = tuple(key)
    return (
        entry.state,
        entry.kind,
        entry.key_group,
        entry.subtask,
        *map(plain, (key, namespace, user_key, value)),
        *entry[8:],
    )


def plain_rows(df: DataFrame, states: dict[str, StateDescriptor]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as `plain_entry` has entries: of a struct of states, the entry's own."""
    by_state = {
        field.name: isinstance(field.dataType, T.StructType)
        and set(field.dataType.names) <= states.keys()
        for field in df.schema
    }
    for row in df.collect():
        typed = []
        for name in TYPED:
            value = row[name]
            if by_state[name] and value is not None:
                others = value.asDict()
                value = others.pop(row["state"])
                assert not any(other is not None for other in others.values())
            typed.append(plain(value))
        same = (row["state"], row["kind"], row["key_group"], row["subtask"])
        rest = ("last_access", "timestamp", "bytes", "key_bytes")
        yield (*same, *typed, *(row[name] for name in rest))


def states_of(operator: Operator) -> dict[str, StateDescriptor]:
    return {state.name: state for state in operator.states}


def assert_same(df: DataFrame, operator: Operator, entries: Iterable[StateEntry]) -> int:
    states = states_of(operator)
    expected = Counter(plain_entry(entry, states) for entry in entries)
    assert Counter(plain_rows(df, states)) == expected
    return expected.total()


def keyed(saved: Point) -> Iterator[Operator]:
    return (operator for operator in saved.read().operators if operator.states)


# --- against the reader without Spark ---------------------------------------------------


@pytest.mark.parametrize(
    ("flink", "step"),
    first_by_default(
        1, [("2.3.0", 12), ("2.3.0", 1), ("1.20.5", 1), ("1.17.2", 1), ("1.14.6", 1)]
    ),
)
def test_every_point(spark: SparkSession, flink: str, step: int) -> None:
    """The operators of points, those whose columns are alike in one query."""
    if is_connect(spark):
        pytest.skip("the data source reads one operator at a time")
    alike: dict[str, list[Operator]] = {}
    points = [saved for saved in POINTS if saved.flink == flink][::step]
    for saved in points:
        for operator in keyed(saved):
            alike.setdefault(str(operator.states), []).append(operator)
    total = 0
    for operators in alike.values():
        first = operators[0]
        tasks = [task for operator in operators for task in read_tasks(operator, None, None)]
        df = spark_savepoint._read_classic(spark, tasks, layout_of(first.states), 2)
        total += assert_same(
            df, first, (entry for operator in operators for entry in operator.entries())
        )
    print(f"{flink}: {len(points)} points, {len(alike)} queries, {total} entries")
    assert total > 1_000 / step


@pytest.mark.parametrize(
    "name",
    [
        "2.3.0-rocksinc-checkpoint",
        *(
            pytest.param(saved.name, marks=pytest.mark.slow)
            for saved in POINTS
            if saved.flink == "2.3.0" and saved.name != "2.3.0-rocksinc-checkpoint"
        ),
    ],
)
def test_every_operator_of_a_point(spark: SparkSession, name: str) -> None:
    saved = point(name)
    for operator in keyed(saved):
        df = read_keyed_state(spark, saved.path, operator.operator_id, moved=saved.moved)
        assert_same(df, operator, operator.entries())


def test_some_key_groups_of_one_state(spark: SparkSession) -> None:
    operator = HEAP.read().operator("by-string")
    for state in ("byCity", "visits"):
        df = read_keyed_state(spark, HEAP.path, "by-string", state, key_groups=range(40, 90))
        assert assert_same(df, operator, operator.entries([state], range(40, 90))) > 0
    assert read_keyed_state(spark, HEAP.path, "by-string", key_groups=[]).collect() == []


def test_the_types_of_one_state(spark: SparkSession) -> None:
    df = read_keyed_state(spark, HEAP.path, "by-string", "visits")
    assert df.schema.simpleString() == (
        "struct<key_group:int,subtask:int,state:string,kind:string,key:string,namespace:string,"
        "user_key:string,value:array<struct<last_access:bigint,value:string>>,last_access:bigint,"
        "timestamp:bigint,bytes:bigint,key_bytes:binary>"
    )
    df = read_keyed_state(spark, HEAP.path, "by-tuple", "ttlMap")
    types = {field.name: field.dataType.simpleString() for field in df.schema}
    assert types["key"] == "struct<f0:string,f1:int>"
    assert types["user_key"] == "int"
    assert types["value"] == "string"


def test_the_types_of_all_states(spark: SparkSession) -> None:
    """One type where all agree, else a field for each state that has one."""
    df = read_keyed_state(spark, HEAP.path, "by-long")
    assert df.schema["key"].dataType == T.LongType()
    assert df.schema["user_key"].dataType.simpleString() == "struct<byCity:string,ttlMap:int>"
    value = df.schema["value"].dataType
    assert isinstance(value, T.StructType)
    assert {"count", "pair", "visits", "byCity"} < set(value.names)
    assert not [name for name in value.names if "timer" in name]


def test_an_operator_without_keyed_state_has_no_rows(spark: SparkSession) -> None:
    operator = next(operator for operator in HEAP.read().operators if not operator.states)
    df = read_keyed_state(spark, HEAP.path, operator.operator_id)
    assert df.collect() == []
    assert df.columns[4:] == [*StateEntry._fields[4:]]
    assert {*df.columns} == {*StateEntry._fields}


# --- types that no point has ------------------------------------------------------------

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
    (TupleSerializer([]), "struct<>", [((), ())]),
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
                Row(({dt.date(1, 1, 1): 2}, Variant(b"v", b"m"), -5, 2**40, b"r")),
                ({dt.date(1, 1, 1): 2}, (b"v", b"m"), -5, 2**40, b"r", "+I"),
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
    (JavaSerializer(), "binary", [(b"\xac\xed\0\5t\0\1a", b"\xac\xed\0\5t\0\1a")]),
    (
        VariantSerializer(),
        "struct<value:binary,metadata:binary>",
        [(Variant(b"v", b"m"), (b"v", b"m"))],
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

INSTANTS = [
    InstantSerializer(),
    DateSerializer(),
    SqlDateSerializer(),
    SqlTimeSerializer(),
    SqlTimestampSerializer(),
    RowDataSerializer([parse_logical_type("TIMESTAMP_LTZ(6)")]),
]


# Texts or bytes; none is a state's.
WITHOUT_COLUMN = {AvroSerializer, KryoSerializer, TimerSerializer}


def test_every_serializer_has_a_column() -> None:
    assert {*REGISTRY.values()} - {*COLUMNS} == WITHOUT_COLUMN
    assert {*COLUMNS} <= {*REGISTRY.values()}


def test_values(spark: SparkSession) -> None:
    columns: list[tuple[T.DataType, Sequence[Any], list[Any]]] = []
    for serializer, spark_type, values in VALUES:
        column = column_of(serializer)
        assert (column.data_type.simpleString() if column else "") == spark_type, serializer
        if column is not None:
            converted = column.convert([value for value, _ in values])
            columns.append((column.data_type, converted, [expected for _, expected in values]))
    schema = T.StructType(
        [T.StructField(f"c{n}", T.ArrayType(of)) for n, (of, _, _) in enumerate(columns)]
    )
    df = spark.createDataFrame([tuple(converted for _, converted, _ in columns)], schema)
    [row] = df.collect()
    for seen, (_, _, expected) in zip(row, columns, strict=True):
        assert [*map(plain, seen)] == [*map(plain, expected)]


def test_instants_are_those_of_the_time_zone_of_none(spark: SparkSession) -> None:
    column = column_of(TupleSerializer(INSTANTS))
    assert column is not None
    instant = dt.datetime(2024, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
    schema = T.StructType([T.StructField("v", column.data_type)])
    rows = column.convert([(*(instant,) * 5, Row((instant,)))])
    df = spark.createDataFrame([(row,) for row in rows], schema)
    names = ["v.f0", "v.f1", "v.f2", "v.f3", "v.f4", "v.f5.f0"]
    [row] = df.selectExpr(*(f"unix_micros({name})" for name in names)).take(1)
    assert [*row] == [1_719_835_200_000_005] * 6


def test_every_value_of_flink_has_its_type_or_is_refused() -> None:
    """Flink's cases of every serializer, by the check that Spark itself makes of values."""
    counts: Counter[str] = Counter()
    refused = []
    for case in cases():
        snapshot = b"\0\0\0\2" + case.snapshot
        serializer = Serializer.from_snapshot(snapshot, kryo_version=case.kryo_version)
        column = column_of(serializer)
        if type(serializer) in WITHOUT_COLUMN - {AvroSerializer, KryoSerializer} or not column:
            continue
        check = T._make_type_verifier(column.data_type, nullable=True)
        for value in case.values:
            try:
                decoded = serializer.decode(value.data)
            except UnsupportedKeyTypeError:
                continue
            try:
                [converted] = column.convert([decoded])
            except InvalidValueError as error:
                refused.append(str(error))
                continue
            check(converted)
            counts[case.group] += 1
    reasons = ("is nothing that", "half of a surrogate pair", "the key null")
    assert all(any(reason in text for reason in reasons) for text in refused)
    assert len(refused) < counts.total() / 8
    assert counts.keys() >= {case.group for case in cases()} - {"dataview", "ns", "timer"}


@pytest.mark.parametrize(
    ("serializer", "value", "message"),
    [
        (STRING, "a\ud800", r"'a\\ud800' has half of a surrogate pair"),
        (CHAR, "\udfff", "half of a surrogate pair"),
        (ListSerializer(STRING), ["\udc00"], "half of a surrogate pair"),
        (
            RowDataSerializer([parse_logical_type("DATE")]),
            Row((2**31 - 1,)),
            "2147483647 is nothing that",
        ),
        (
            RowDataSerializer([parse_logical_type("TIMESTAMP(6)")]),
            Row((TimestampData(2**62, 0),)),
            "is nothing that a column of Spark holds unchanged",
        ),
        (MapSerializer(STRING, INT), {None: 1}, "a map has the key null"),
        (MapSerializer(DOUBLE, INT), [(0.0, 1), (-0.0, 2)], "is nothing that"),
        (PojoSerializer("a.B", ["id"], [INT]), b"\x04", "is nothing that"),
        (PojoSerializer("a.B", ["id"], [INT]), Pojo("a.C", {"id": 1}), "is nothing that"),
        (INT, True, "True is nothing that"),
        (LocalDateSerializer(), LocalDate(10_000, 1, 1), "is nothing that"),
        (InstantSerializer(), Instant(0, 1), r"Instant\(epoch_second=0, nano=1\) is nothing that"),
        (DateSerializer(), 2**62, "is nothing that"),
        (LocalDateTimeSerializer(), LocalDateTime(1, 1, 1, 0, 0, 0, 1), "is nothing that"),
        (OptionSerializer(STRING), Some(None), r"Some\(value=None\) is nothing that"),
        (
            MapSerializer(SetSerializer(INT), INT),
            {frozenset({1}): 1},
            "a map has keys that are arrays",
        ),
        (
            TupleSerializer([BigIntSerializer(), KryoSerializer("java.util.List")]),
            (10**5_000, []),
            "a value cannot be printed, ",
        ),
        (RawValueDataSerializer(KryoSerializer("a.B")), "text", "is nothing that"),
    ],
)
def test_what_no_column_holds_is_refused(serializer: Serializer, value: Any, message: str) -> None:
    column = column_of(serializer)
    assert column is not None
    with pytest.raises(InvalidValueError, match=message):
        column.convert([None, value])


def test_keys_of_flink_sql_have_no_kind() -> None:
    """Nor have rows in them: all are of kind +I, and another is refused."""
    types = [parse_logical_type("BIGINT"), parse_logical_type("ARRAY<ROW<INT>>")]
    column = key_column_of(RowDataSerializer(types))
    assert column is not None
    assert column.data_type.simpleString() == "struct<f0:bigint,f1:array<struct<f0:int>>>"
    key = Row((1, [Row((2,)), None]))
    assert column.convert([key, None]) == [(1, [(2,), None]), None]
    for other in (Row((1, None), "-U"), Row((1, [Row((2,), "+U")]))):
        with pytest.raises(InvalidValueError, match="is nothing that a column of Spark holds"):
            column.convert([key, other])


def test_what_only_the_job_can_read_is_bytes() -> None:
    kryo = KryoSerializer("a.B")
    timers = StateDescriptor("timers", "PRIORITY_QUEUE", STRING, kryo, None)
    count = StateDescriptor("count", "VALUE", STRING, VOID_NAMESPACE, LONG)
    layout = layout_of([timers, count])
    assert layout.schema["key"].dataType == T.StringType()
    assert layout.schema["namespace"].dataType == T.BinaryType()
    assert layout.has_key_bytes
    assert not layout_of([count]).has_key_bytes
    items = StateDescriptor("items", "LIST", STRING, kryo, kryo)
    schema = layout_of([items]).schema
    assert schema["namespace"].dataType == schema["value"].dataType == T.BinaryType()


def test_keys_that_only_the_job_can_tell(spark: SparkSession, tmp_path: Path) -> None:
    """One whose end is known, beside one that a string follows."""
    states = [
        sb.state("count", "VALUE", sb.simple("Long")),
        sb.state("named", "MAP", sb.map_of(sb.simple("String"), sb.simple("Long"))),
    ]
    data = sb.keyed_header(sb.kryo_of("a.B"), states)
    count, named = [(b"\3any\0", sb.i64(5))], [(b"\3any\0\2a", b"\0" + sb.i64(6))]
    content = sb.canonical_key_group([(0, count), (1, named)])
    keyed = sb.canonical(3, [len(data)], sb.inline(data + content))
    folder = sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    rows = read_keyed_state(spark, folder, bytes(16).hex()).orderBy("value").collect()
    assert [(row.key, row.user_key, row.value, row.key_bytes) for row in rows] == [
        (b"any", None, 5, None),
        (None, None, 6, b"any\0\2a"),
    ]


@pytest.fixture(scope="module")
def money() -> type[Serializer]:
    """A serializer of a job's own: amounts of a currency, which the snapshot names."""

    class MoneySerializer(Serializer):
        name, versions, size, key_type = "MONEY", (1,), 8, LONG_TYPE

        def __init__(self, currency: str) -> None:
            self.java_class = currency
            super().__init__(currency)

        @classmethod
        def from_contents(cls, cursor: Any, version: int, depth: int) -> Serializer:
            return cls(cursor.utf())

        @staticmethod
        def read(data: bytes, pos: int) -> tuple[int, int]:
            return int.from_bytes(data[pos : pos + 8], "big", signed=True), pos + 8

    return MoneySerializer


def test_serializers_of_the_jobs_own(
    spark: SparkSession, tmp_path: Path, money: type[Serializer]
) -> None:
    """They are read on the executors as they are here, and refused where Spark sends no class."""
    snapshot = sb.snapshot("a.MoneySnapshot", 1, sb.utf("EUR"))
    states = [sb.state("paid", "VALUE", snapshot), sb.state("all", "LIST", sb.list_of(snapshot))]
    header = sb.keyed_header(sb.simple("String"), states)
    group = assign_to_key_group("a", 128)
    key = bytes([group]) + b"\2a\0"
    elements = sb.i64(8) + b"," + sb.i64(-9)
    content = sb.canonical_key_group([(0, [(key, sb.i64(7))]), (1, [(key, elements)])])
    keyed = sb.canonical(group, [len(header)], sb.inline(header + content))
    folder = sb.write(
        tmp_path / "point", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-user")]
    )
    serializers = {"a.MoneySnapshot": money}
    if is_connect(spark):
        with pytest.raises(InvalidValueError, match="serializers must be None over Spark Connect"):
            read_keyed_state(spark, folder, "by-user", serializers=serializers)
        return
    [unknown] = read_keyed_state(spark, folder, "by-user", "paid").collect()
    assert unknown.value == sb.i64(7)
    df = read_keyed_state(spark, folder, "by-user", serializers=serializers)
    assert df.schema["value"].dataType.simpleString() == "struct<paid:bigint,all:array<bigint>>"
    rows = df.orderBy("state").select("state", "value.paid", "value.all").collect()
    assert rows == [("all", None, [8, -9]), ("paid", 7, None)]
    change_max_parallelism(spark, folder, 64, tmp_path / "new", serializers=serializers)
    written = read_savepoint(tmp_path / "new", serializers=serializers).operator("by-user")
    assert written.max_parallelism == 64
    assert {entry.state: entry.value for entry in written.entries()} == {
        "all": [8, -9],
        "paid": 7,
    }


# --- what is refused, and damage --------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda spark: read_keyed_state(cast("Any", None), "x", "y"),
            InvalidTypeError,
            "spark must be a Spark",
        ),
        (
            lambda spark: read_keyed_state(spark, cast("Any", 5), "y"),
            InvalidTypeError,
            "path must be a str",
        ),
        (lambda spark: read_keyed_state(spark, "/nowhere", "y"), SavepointError, "/nowhere/_meta"),
        (lambda spark: read_heap(spark, "nope"), InvalidValueError, "operator must be .* 'nope'"),
        (lambda spark: read_heap(spark, state="nope"), InvalidValueError, "states must .* 'nope'"),
        (lambda spark: read_heap(spark, state=["a"]), InvalidTypeError, "state must be a str"),
        (lambda spark: read_heap(spark, key_groups=[128]), InvalidValueError, "from 0 to 127"),
        (lambda spark: read_heap(spark, key_groups="1"), InvalidTypeError, "key_groups must be"),
        (
            lambda spark: read_heap(spark, key_groups=[0] * 129),
            InvalidValueError,
            "at most 128",
        ),
        (
            lambda spark: register_data_source(cast("Any", 5)),
            InvalidTypeError,
            "spark must be a SparkSession",
        ),
    ],
)
def test_refused_before_anything_runs(
    spark: SparkSession,
    call: Callable[[SparkSession], object],
    error: type[KeyGroupsError],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        call(spark)


def read_heap(spark: SparkSession, operator: Any = "by-string", **arguments: Any) -> DataFrame:
    return read_keyed_state(spark, HEAP.path, operator, **arguments)


@pytest.fixture
def elsewhere(tmp_path: Path) -> tuple[Path, Path]:
    """A savepoint with a file in another folder, and that folder."""
    folder, other = tmp_path / "point", tmp_path / "other"
    data = sb.keyed_header(sb.simple("String"), [sb.state("count", "VALUE", sb.simple("Long"))])
    group = assign_to_key_group("a", 128)
    entries = [(bytes([group]) + b"\2a\0", sb.i64(7))]
    head, data = len(data), data + sb.canonical_key_group([(0, entries)])
    other.mkdir()
    (other / "keyed").write_bytes(data)
    keyed = sb.canonical(group, [head], sb.absolute(f"file:{other}/keyed", len(data)))
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-string")])
    return folder, other


def test_files_elsewhere(
    spark: SparkSession, elsewhere: tuple[Path, Path], tmp_path: Path
) -> None:
    """They are read and copied where the caller allows it, by the executors too."""
    folder, other = elsewhere
    message = "is not in the savepoint: pass allow="
    with pytest.raises(SavepointError, match=message):
        read_keyed_state(spark, folder, "by-string")
    with pytest.raises(SavepointError, match=message):
        change_max_parallelism(spark, folder, 64, tmp_path / "new")
    df = read_keyed_state(spark, folder, "by-string", allow=[other])
    assert df.select("key", "value").collect() == [("a", 7)]
    change_max_parallelism(spark, folder, 64, tmp_path / "new", allow=[other])
    entries = read_savepoint(tmp_path / "new").operators[0].entries()
    assert [entry.value for entry in entries] == [7]


@pytest.mark.slow
def test_files_elsewhere_for_the_data_source(
    formatted: SparkSession, elsewhere: tuple[Path, Path]
) -> None:
    folder, other = elsewhere
    with pytest.raises(PySparkException, match="is not in the savepoint"):
        load(formatted, folder, operator="by-string").collect()
    df = load(formatted, folder, operator="by-string", allow=json.dumps([str(other)]))
    assert df.select("key", "value").collect() == [("a", 7)]


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, int]:
    """A savepoint with the last key group of one file overwritten, and that key group."""
    folder = tmp_path / "point"
    shutil.copytree(point("2.3.0-files-canonical").path, folder)
    operator = Point.read(point("2.3.0-files-canonical")).operator("by-string")
    entries = list(operator.entries())
    last = max(entry.key_group for entry in entries if entry.subtask == 0)
    task = operator.tasks()[0]
    handle, *_ = task.handles
    assert isinstance(handle, KeyGroupsHandle)
    stream = handle.stream
    start = handle.offsets[last - handle.key_groups.start_key_group]
    path = folder / Path(stream.path).name
    data = path.read_bytes()
    path.write_bytes(data[: start + 4] + b"\x7f" * (len(data) - start - 4))
    return folder, last


def test_damage_fails_the_query_and_says_where(
    spark: SparkSession, damaged: tuple[Path, int]
) -> None:
    folder, last = damaged
    df = read_keyed_state(spark, folder, "by-string", "count")
    with pytest.raises(QUERY_FAILS, match="SavepointError") as caught:
        df.collect()
    assert re.search(r"/point/[-0-9a-f]+, offset \d+: ", str(caught.value))
    others = [group for group in range(128) if group != last]
    assert read_keyed_state(spark, folder, "by-string", "count", key_groups=others).count() > 0


# --- the data source --------------------------------------------------------------------


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("flink-state").options(**options).load(str(path))


def test_the_data_source_needs_spark_4(spark: SparkSession) -> None:
    if spark.version >= "4":
        pytest.skip("this Spark has data sources in Python")
    with pytest.raises(KeyGroupsError, match=r"needs Spark 4\.0, this is 3\."):
        register_data_source(spark)


@pytest.mark.slow
def test_the_data_source_reads_the_same(formatted: SparkSession) -> None:
    saved = point("2.3.0-rocksinc-checkpoint")
    operator = saved.read().operator("by-string")
    df = load(formatted, saved.path, operator="by-string", moved=json.dumps(saved.moved))
    read = read_keyed_state(formatted, saved.path, "by-string", moved=saved.moved)
    assert df.schema == read.schema
    assert assert_same(df, operator, operator.entries()) > 0
    df = load(formatted, saved.path, operator="by-string", state="sum", keyGroups="0-40,60")
    groups = [*range(41), 60]
    assert assert_same(df, operator, operator.entries(["sum"], groups)) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    first_by_default(  # Spark starts a process for each
        2,
        [
            ({}, "needs the option operator"),
            ({"operator": "by-string", "allow": "/a"}, "allow must be a JSON list of paths"),
            ({"operator": "nope"}, "operator must be an operator's uid"),
            ({"operator": "by-string", "state": "nope"}, "states must be of by-string"),
            ({"operator": "by-string", "keyGroups": "a"}, "keyGroups must be such as 0-63,70"),
            ({"operator": "by-string", "moved": "[]"}, "moved must be a JSON object of paths"),
            ({"operator": "by-string", "allow": "[5]"}, "allow must be a JSON list of paths"),
            ({"operator": "by-string", "group": "1"}, "has the options path, operator"),
        ],
    ),
)
def test_options_are_checked(
    formatted: SparkSession, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        load(formatted, HEAP.path, **options).collect()


def test_a_schema_of_ones_own_is_refused(formatted: SparkSession) -> None:
    reader = formatted.read.format("flink-state").schema("key int").option("operator", "by-string")
    with pytest.raises(PySparkException, match="schema must be that of the state"):
        reader.load(str(HEAP.path)).collect()


@pytest.mark.slow
def test_filters_leave_out_bytes(formatted: SparkSession, damaged: tuple[Path, int]) -> None:
    """With the filter pushed down, damage in what it leaves out is not met."""
    folder, last = damaged
    count = "state = 'count' AND key_group"
    filters = [f"{count} < {last}", f"{count} IN ({last - 1}, {last - 2})", f"{count} = 127"]
    df = load(formatted, folder, operator="by-string")
    expected = point("2.3.0-files-canonical").read().operator("by-string").entries(["count"])
    groups = [entry.key_group for entry in expected]
    with pytest.raises(PySparkException, match="SavepointError"):
        df.filter(filters[0]).collect()
    if formatted.version < "4.1":
        return
    formatted.conf.set(PUSHDOWN, "true")
    try:
        assert df.filter(filters[0]).count() == sum(group < last for group in groups) > 0
        assert df.filter(filters[1]).count() == sum(last - 3 < group < last for group in groups)
        assert df.filter(filters[2]).count() == groups.count(127)
        assert df.filter("state = 'nope'").count() == 0
        assert df.filter("kind = 'MAP' AND key_group > 100").count() > 0
        with pytest.raises(PySparkException, match="SavepointError"):
            df.filter(f"key_group >= {last} AND NOT state = 'sum'").collect()
    finally:
        formatted.conf.unset(PUSHDOWN)


def test_filters_choose_tasks(formatted: SparkSession) -> None:
    from pyspark.sql import datasource as ds

    from keygroups.spark._savepoint.data_source import FlinkStateDataSource, TaskPartition

    if not hasattr(ds, "EqualTo"):
        pytest.skip("Spark pushes filters down from 4.1")
    source = FlinkStateDataSource({"operator": "by-string", "path": str(HEAP.path)})
    reader = source.reader(source.schema())
    kept: Sequence[Any] = [ds.EqualTo(("key",), "a"), ds.StringStartsWith(("state",), "c")]
    pushed = [ds.In(("state",), ("count", "sum")), ds.GreaterThanOrEqual(("key_group",), 100)]
    assert list(reader.pushFilters([*kept, *pushed])) == kept
    tasks = [
        partition.task for partition in reader.partitions() if isinstance(partition, TaskPartition)
    ]
    assert {task.states for task in tasks} == {frozenset({"count", "sum"})}
    assert min(min(task.key_groups) for task in tasks) == 100
    assert list(reader.read(ds.InputPartition(None))) == []


@pytest.mark.parametrize(
    ("text", "expected"), [("", []), ("5", [5]), ("0-2,7", [0, 1, 2, 7]), ("3-2", [])]
)
def test_key_groups_as_text(text: str, expected: list[int]) -> None:
    assert parse_key_groups(text) == expected
