"""Keyed state of real savepoints as DataFrames, against the same read without Spark."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from support.bytes import savepoint_bytes as sb
from support.bytes.column_values import VALUES
from support.bytes.real_savepoints import POINTS, Point, point
from support.bytes.serializer_cases import cases
from support.inside.adapter import classic_frame_of, is_connect, spark_schema, spark_type_of
from support.inside.columns import PartedJob, column_of, layout_of, state_query
from support.inside.savepoints import KeyGroupsHandle
from support.inside.serializers import (
    LONG,
    STRING,
    AvroSerializer,
    DateSerializer,
    InstantSerializer,
    KryoSerializer,
    RowDataSerializer,
    SqlDateSerializer,
    SqlTimeSerializer,
    SqlTimestampSerializer,
    TimerSerializer,
    TupleSerializer,
)
from support.selections import first_by_default

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, assign_to_key_group
from keygroups.errors import SavepointError, UnsupportedKeyTypeError
from keygroups.logical_types import parse_logical_type
from keygroups.savepoint import (
    GlobalWindow,
    Operator,
    Row,
    StateDescriptor,
    StateEntry,
    TimeWindow,
    TtlValue,
    read_savepoint,
)
from keygroups.savepoint.values import Pojo
from keygroups.spark import change_max_parallelism, read_keyed_state, register_data_source
from keygroups.spark._savepoint import sought_keys
from keygroups.state_keys import VOID_NAMESPACE, Serializer
from keygroups.types import LONG as LONG_TYPE

TYPED = {"key": 4, "namespace": 5, "user_key": 6, "value": 7}  # the places in an entry
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


@pytest.mark.long
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
        queries = [state_query.StateQuery(operator) for operator in operators]
        parts = tuple(part for query in queries for part in query.job(None).parts)
        job = PartedJob(parts, queries[0].reader.read, queries[0].schema)
        df = classic_frame_of(spark, job)
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


@pytest.mark.long
def test_entries_of_some_keys(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list or a DataFrame with nulls and absent keys, and of more keys than are collected."""
    operator = HEAP.read().operator("by-string")
    entries = [*operator.entries(["count"])]
    sought = [entry.key for entry in entries][::3]
    wanted = [entry for entry in entries if entry.key in sought]
    assert 0 < len(wanted) < len(entries)
    rows = [("not there", 1), (None, 2), *((key, 3) for key in sought)]
    keys = spark.createDataFrame([*rows, *rows], "Key string, n int")
    passed: Any
    for passed in (keys, iter(["not there", *sought, *sought])):
        df = read_heap(spark, state="count", keys=passed)
        assert df.columns == read_heap(spark, state="count").columns
        assert assert_same(df, operator, wanted) > 0
    assert read_heap(spark, state="count", keys=[]).collect() == []
    few = range(40, 90)
    of_few = [entry for entry in wanted if entry.key_group in few]
    df = read_heap(spark, state="count", keys=sought, key_groups=few)
    assert assert_same(df, operator, of_few) > 0
    monkeypatch.setattr(sought_keys, "_MOST_KEYS", len(sought) - 1)
    for passed in (keys, sought):
        assert assert_same(read_heap(spark, state="count", keys=passed), operator, wanted) > 0


def test_some_columns(spark: SparkSession) -> None:
    """In their order; the keys that are wanted need not be among them."""
    operator = HEAP.read().operator("by-string")
    rows = {entry.key: (entry.value, entry.bytes) for entry in operator.entries(["count"])}
    df = read_heap(spark, state="count", columns=["value", "bytes"])
    assert df.columns == ["value", "bytes"]
    assert Counter(map(tuple, df.collect())) == Counter(rows.values())
    sought = [*rows][::3]
    df = read_heap(spark, state="count", columns=["value", "bytes"], keys=sought)
    assert df.columns == ["value", "bytes"]
    assert Counter(map(tuple, df.collect())) == Counter(rows[key] for key in sought)


@pytest.mark.long
def test_key_groups_without_the_keys_are_not_read(
    spark: SparkSession, damaged: tuple[Path, int]
) -> None:
    """The last key group is damaged, which fails a query that reads it."""
    folder, last = damaged
    keys = [*map(str, range(999))]
    others = [key for key in keys if assign_to_key_group(key, 200) != last]
    read_keyed_state(spark, folder, "by-string", "count", keys=others).collect()
    df = read_keyed_state(spark, folder, "by-string", "count", keys=keys)
    with pytest.raises(QUERY_FAILS, match="SavepointError"):
        df.collect()


def test_a_relative_path_is_that_of_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose folder tasks, and a server of Spark Connect, know nothing of."""
    (tmp_path / "savepoints").mkdir()
    shutil.copytree(HEAP.path, tmp_path / "savepoints" / "savepoint")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    path, moved = "../savepoints/savepoint", {"/old": "../savepoints"}
    df = read_keyed_state(spark, path, "by-string", "count", moved=moved, allow=["../savepoints"])
    operator = HEAP.read().operator("by-string")
    assert assert_same(df, operator, operator.entries(["count"])) > 0


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


@pytest.mark.parametrize("state", ["pair", "ttlMap", "visits"])
def test_a_table_of_arrow_has_the_same_columns(spark: SparkSession, state: str) -> None:
    """But for those that are null in all rows, and what is the same in all."""
    table = HEAP.read().operator("by-string").to_arrow(state)
    df = read_keyed_state(spark, HEAP.path, "by-string", state)
    rows = [row.asDict(recursive=True) for row in df.collect()]
    rest = [name for name in df.columns if name not in table.column_names]
    assert {*rest} >= {"state", "kind", "namespace", "timestamp", "key_bytes"}
    assert {row[name] for row in rows for name in rest} - {state} <= {None, rows[0]["kind"]}
    of_table = df.select(*table.column_names)
    assert spark_schema(table.schema) == of_table.schema
    kept = [{name: row[name] for name in table.column_names} for row in rows]
    assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, kept))


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


def test_values(spark: SparkSession) -> None:
    columns: list[tuple[T.DataType, Sequence[Any], list[Any]]] = []
    for serializer, spark_type, values in VALUES:
        column = column_of(serializer)
        if column is None:
            assert spark_type == "", serializer
            continue
        item = spark_type_of(column.data_type)
        assert item.simpleString() == spark_type, serializer
        converted = column.convert([value for value, _ in values])
        columns.append((item, converted, [expected for _, expected in values]))
    schema = T.StructType(
        [T.StructField(f"c{n}", T.ArrayType(item)) for n, (item, _, _) in enumerate(columns)]
    )
    df = spark.createDataFrame([tuple(converted for _, converted, _ in columns)], schema)
    [row] = df.collect()
    for seen, (_, _, expected) in zip(row, columns, strict=True):
        assert [*map(plain, seen)] == [*map(plain, expected)]


def test_instants_are_those_of_the_time_zone_of_none(spark: SparkSession) -> None:
    column = column_of(TupleSerializer(INSTANTS))
    assert column is not None
    instant = dt.datetime(2024, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
    schema = T.StructType([T.StructField("v", spark_type_of(column.data_type))])
    rows = column.convert([(*(instant,) * 5, Row((instant,)))])
    df = spark.createDataFrame([(row,) for row in rows], schema)
    names = ["v.f0", "v.f1", "v.f2", "v.f3", "v.f4", "v.f5.f0"]
    [row] = df.selectExpr(*(f"unix_micros({name})" for name in names)).take(1)
    assert [*row] == [1_719_835_200_000_005] * 6


@pytest.mark.long
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
        check = T._make_type_verifier(spark_type_of(column.data_type), nullable=True)
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


def test_what_only_the_job_can_read_is_bytes() -> None:
    kryo = KryoSerializer("a.B")
    timers = StateDescriptor("timers", "PRIORITY_QUEUE", STRING, kryo, None)
    count = StateDescriptor("count", "VALUE", STRING, VOID_NAMESPACE, LONG)
    layout = layout_of([timers, count])
    schema = spark_schema(layout.schema)
    assert schema["key"].dataType == T.StringType()
    assert schema["namespace"].dataType == T.BinaryType()
    items = StateDescriptor("items", "LIST", STRING, kryo, kryo)
    schema = spark_schema(layout_of([items]).schema)
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


@pytest.mark.long
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
        (lambda spark: read_heap(spark, keys="ab"), InvalidTypeError, "keys must be an iterable"),
        (lambda spark: read_heap(spark, keys=["a", 5]), InvalidTypeError, "key .* got 5"),
        (lambda spark: read_heap(spark, keys=[None]), InvalidValueError, "key .*null"),
        (
            lambda spark: read_heap(spark, keys=spark.range(3)),
            InvalidValueError,
            "keys must be of df's columns, got 'key'",
        ),
        (
            lambda spark: read_heap(spark, keys=spark.range(3).withColumnRenamed("id", "key")),
            InvalidTypeError,
            "keys must have a column key of type string, got bigint",
        ),
        (
            lambda spark: read_heap(spark, "by-tuple", keys=[(1, "a")]),
            UnsupportedKeyTypeError,
            "keys must be None for operator by-tuple, .*only text and integers",
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    first_by_default(  # Spark starts a process for each
        1,
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
    with pytest.raises(PySparkException, match=message) as raised:
        load(formatted, HEAP.path, **options).collect()
    first, *others = str(raised.value).partition("JVM stacktrace:")[0].strip().splitlines()
    assert re.search(message, first)  # a page of traces has it at its end
    assert len(others) <= 1  # the SQLSTATE's


TABLE = "flink_state_table"
MADE: list[Callable[[SparkSession, str], object]] = [
    lambda spark, path: spark.sql(
        f"CREATE TABLE {TABLE} USING `flink-state` "
        f"OPTIONS (operator 'by-string', state 'count', keyGroups '0-63', path '{path}')"
    ),
    lambda spark, path: spark.sql(
        f"CREATE TABLE {TABLE} USING `flink-state` OPTIONS (operator 'by-string', state 'count', "
        f"keyGroups '0-63') LOCATION '{path}' COMMENT 'counts' TBLPROPERTIES (team = 'a')"
    ),
    *(
        partial(
            lambda method, spark, path: getattr(spark.catalog, method)(
                *(TABLE, path, "flink-state"),
                operator="by-string",
                state="count",
                keyGroups="0-63",
            ),
            method,
        )
        for method in ("createTable", "createExternalTable")
    ),
]


@pytest.fixture
def no_table(formatted: SparkSession) -> Iterator[None]:
    yield
    formatted.sql(f"DROP TABLE IF EXISTS {TABLE}")


@pytest.mark.long
@pytest.mark.usefixtures("no_table")
@pytest.mark.filterwarnings("ignore:createExternalTable is deprecated:FutureWarning")
@pytest.mark.parametrize("make", first_by_default(2, MADE))
def test_tables(formatted: SparkSession, make: Callable[[SparkSession, str], object]) -> None:
    """A table of the catalog is read back with the options that it was made with."""
    make(formatted, str(HEAP.path))
    operator = HEAP.read().operator("by-string")
    df = formatted.table(TABLE)
    assert assert_same(df, operator, operator.entries(["count"], range(64))) > 0
    few = formatted.sql(f"SELECT key_group FROM {TABLE} WITH (keyGroups = '0-9')").collect()
    assert {row[0] for row in few} <= {*range(10)}
    assert few
    assert HEAP.path.is_dir()


@pytest.mark.slow
@pytest.mark.usefixtures("no_table")
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (" USING `flink-state` OPTIONS (operator 'by-string', stat 'x')", "allow, keyGroups, got"),
        (" USING `flink-state` OPTIONS (state 'count')", "needs the option operator"),
        (" (key string) USING `flink-state` OPTIONS (operator 'a')", "if CREATE TABLE names col"),
    ],
)
def test_tables_are_checked(formatted: SparkSession, statement: str, message: str) -> None:
    def read() -> object:
        formatted.sql(f"CREATE TABLE {TABLE}{statement} LOCATION '{HEAP.path}'")
        return formatted.table(TABLE).collect()

    with pytest.raises(PySparkException, match=message):
        read()


@pytest.mark.slow
def test_a_table_needs_a_place(formatted: SparkSession) -> None:
    statement = "USING `flink-state` OPTIONS (operator 'by-string')"
    with pytest.raises(PySparkException, match="needs the option path"):
        formatted.sql(f"CREATE TABLE {TABLE} {statement}")


def data_source(options: dict[str, str]) -> Any:
    """Return the data source of some options, which PySpark 3.5 has no class for."""
    from keygroups.spark._savepoint.data_source import FlinkStateDataSource

    return FlinkStateDataSource(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"option.path": "/else", "provider": "flink-state"}, "got path '{}' and path '/else'"),
        (
            {"option.location": "/else", "provider": "flink-state"},
            "got path '{}' and location '/else'",
        ),
        ({"location": "/else", "provider": "flink-state"}, "got path '{}' and location '/else'"),
        ({"location": "{}"}, "keyGroups, columns, got 'location'"),
        ({"option.path": "file:{}/", "location": "{}/", "provider": "flink-state"}, None),
        ({"option.path": "{}"}, "keyGroups, columns, got 'option.path'"),
        (
            {"option.stat": "1", "stat": "1", "provider": "flink-state"},
            "keyGroups, columns, got 'stat'",
        ),
        ({"stat": "1", "provider": "flink-state"}, None),
        ({"stat": "1"}, "keyGroups, columns, got 'stat'"),
    ],
)
def test_options_that_spark_adds(options: dict[str, str], message: str | None) -> None:
    """A place is one, however it is written, and what Spark says of a table no option."""
    pytest.importorskip("pyspark.sql.datasource")
    path = str(HEAP.path)
    added = {name: value.replace("{}", path) for name, value in options.items()}
    source = data_source({"operator": "by-string", "path": path, **added})
    if message is None:
        assert source.schema().names[0] == "key_group"
        return
    with pytest.raises(InvalidValueError, match=message.replace("{}", path)):
        source.schema()


@pytest.mark.parametrize("columns", ["value,key", " value, key", None])
def test_some_columns_of_the_data_source(formatted: SparkSession, columns: str | None) -> None:
    """By their names in an option, and by a schema: Spark tells of no others."""
    schema = T.StructType().add("value", "long").add("key", "string")
    options = {"operator": "by-string", "state": "count", "path": str(HEAP.path)}
    options |= {} if columns is None else {"columns": columns}
    source = data_source(options)
    if columns is not None:
        assert source.schema() == schema
    reader = source.reader(schema)
    parts = reader.partitions()
    reader = pickle.loads(pickle.dumps(reader))
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    entries = HEAP.read().operator("by-string").entries(["count"])
    assert Counter((row["value"], row["key"]) for row in rows) == Counter(
        (entry.value, entry.key) for entry in entries
    )
    assert [*rows[0]] == ["value", "key"]


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        (None, {"key": "integer"}),
        (None, {"key": "string", "other": "string"}),
        (None, {"key": "string", "KEY": "string"}),
        (None, {}),
        ("key", {"value": "long"}),
        ("key,value", {"value": "long", "key": "string"}),
    ],
)
def test_a_schema_of_ones_own_is_refused(
    formatted: SparkSession, columns: str | None, schema: dict[str, str]
) -> None:
    options = {"operator": "by-string", "state": "count", "path": str(HEAP.path)}
    options |= {} if columns is None else {"columns": columns}
    asked = T.StructType()
    for name, spark_type in schema.items():
        asked.add(name, spark_type)
    with pytest.raises(InvalidValueError, match="schema must be that of the state, or of some"):
        data_source(options).reader(asked)


@pytest.mark.slow
def test_the_data_source_sends_some_columns(formatted: SparkSession) -> None:
    options = {"operator": "by-string", "state": "count"}
    whole = {row["key"]: row["value"] for row in read_heap(formatted, state="count").collect()}
    for df in (
        load(formatted, HEAP.path, **options, columns="key,value"),
        formatted.read.schema("key string, value bigint")
        .format("flink-state")
        .options(**options)
        .load(str(HEAP.path)),
    ):
        assert df.columns == ["key", "value"]
        assert dict(map(tuple, df.collect())) == whole
    with pytest.raises(PySparkException, match="schema must be that of the state"):
        formatted.read.schema("key int").format("flink-state").options(**options).load(
            str(HEAP.path)
        ).collect()


@pytest.mark.long
def test_filters_of_one_query_are_not_those_of_the_next(formatted: SparkSession) -> None:
    """Spark 4.1 to 4.3 keeps the partitions that a reader has made with pushed filters."""
    groups = [entry.key_group for entry in HEAP.read().operator("by-string").entries(["count"])]
    formatted.conf.set(PUSHDOWN, "true")
    try:
        df = load(formatted, HEAP.path, operator="by-string", state="count")
        few = df.where("key_group < 40").count()
        assert few == sum(group < 40 for group in groups)
        assert df.count() == len(groups) > few > 0
    finally:
        formatted.conf.unset(PUSHDOWN)


@pytest.mark.parametrize(("text", "expected"), [("", []), ("5", [5]), ("0-2,7", [0, 1, 2, 7])])
def test_key_groups_as_text(text: str, expected: list[int]) -> None:
    assert state_query.parse_key_groups(text) == expected
